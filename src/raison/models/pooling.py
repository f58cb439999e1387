"""Which tokens' last hidden states a model predicts from."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from raison.core.encoding import Encoding
from raison.core.errors import UnsupportedError


def prediction_rows(
    model: PreTrainedModel, encoding: Encoding, decoder: bool, logits: Callable[[Encoding], Tensor]
) -> Float[Tensor, "batch tokens"]:
    """Weights over tokens, summing to 1: found from gradients on the first text, never guessed from a name.

    Costs one forward and one backward pass of the first text for an encoder, nothing for a decoder.
    """
    mask = encoding.attention_mask.float()
    last = torch.nn.functional.one_hot(encoding.attention_mask.sum(1) - 1, mask.shape[1]).float()
    if decoder:
        return last
    used = _used_rows(model, encoding.select([0]), logits)
    if used.tolist() == [0]:
        return torch.nn.functional.one_hot(torch.zeros(len(mask), dtype=torch.long), mask.shape[1]).float()
    if used.tolist() == [encoding.lengths[0] - 1]:
        return last
    if len(used) == encoding.lengths[0]:
        return mask / mask.sum(1, keepdim=True)
    raise UnsupportedError(
        f"cannot tell which tokens {type(model).__name__} predicts from",
        [f"its head reads {len(used)} of {encoding.lengths[0]} positions"],
        "Use a method that does not read attention rows, such as integrated_gradients.",
    )


def _used_rows(model: PreTrainedModel, encoding: Encoding, logits: Callable[[Encoding], Tensor]) -> Tensor:
    states: list[Tensor] = []

    def keep(_module: nn.Module, _args: object, output: object) -> None:
        hidden = output[0]  # type: ignore[index]
        states.append(hidden)

    handle = model.base_model.register_forward_hook(keep)
    try:
        with torch.enable_grad():
            first = logits(encoding)
    finally:
        handle.remove()
    weights = torch.linspace(1.0, 2.0, first.shape[1], device=first.device)
    (gradient,) = torch.autograd.grad((first * weights).sum(), states[0])
    return gradient[0].abs().sum(-1).nonzero()[:, 0].cpu()
