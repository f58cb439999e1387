"""Which tokens' last hidden states a model predicts from."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from raison.core.errors import UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.models.families import Pooling
from raison.models.stack.hooks import hooked


def find_pooling(model: PreTrainedModel, encoding: Encoding, logits: Callable[[Encoding], Tensor]) -> Pooling:
    """The states that the head reads, from the gradient of the logits on the first text: never guessed from a name.

    Costs one forward and one backward pass. Raises UnsupportedError if it is none of first, last or mean.
    """
    if model.base_model is model:
        raise UnsupportedError(
            f"cannot tell which tokens {type(model).__name__} predicts from",
            ["it names no base model (base_model_prefix), whose last hidden states its head would read"],
            "Use a method that does not read attention rows, such as integrated_gradients.",
        )
    length = encoding.lengths[0]
    used = _used_rows(model, encoding, logits).tolist()
    if used == [0]:
        return "first"
    if used == [length - 1]:
        return "last"
    if len(used) == length:
        return "mean"
    raise UnsupportedError(
        f"cannot tell which tokens {type(model).__name__} predicts from",
        [f"its head reads {len(used)} of {length} positions"],
        "Use a method that does not read attention rows, such as integrated_gradients.",
    )


def prediction_rows(pooling: Pooling, encoding: Encoding) -> Float[Tensor, "batch tokens"]:
    """Weights over tokens, summing to 1."""
    mask = encoding.attention_mask.float()
    if pooling == "mean":
        return mask / mask.sum(1, keepdim=True)
    position = torch.zeros(len(mask), dtype=torch.long) if pooling == "first" else encoding.attention_mask.sum(1) - 1
    return torch.nn.functional.one_hot(position, mask.shape[1]).float()


def _used_rows(model: PreTrainedModel, encoding: Encoding, logits: Callable[[Encoding], Tensor]) -> Tensor:
    states: list[Tensor] = []

    def keep(_module: nn.Module, _args: object, output: object) -> None:
        hidden = output[0]  # type: ignore[index]
        states.append(hidden)

    with hooked([model.base_model], after=keep), torch.enable_grad():
        first = logits(encoding)
    weights = torch.linspace(1.0, 2.0, first.shape[1], device=first.device)
    (gradient,) = torch.autograd.grad((first * weights).sum(), states[0])
    return gradient[0].abs().sum(-1).nonzero()[:, 0].cpu()
