"""The output layer of a language model, checked against the model's own logits."""

from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor
from transformers import PreTrainedModel

from raison.core.errors import NonFiniteError, UnsupportedError
from raison.models.passes.outputs.output_layer import FoundHead, output_layer
from raison.models.stack.nonfinite import way_out

Read = Callable[[Sequence[int]], tuple[Float[Tensor, "reads hidden"], Float[Tensor, "reads vocabulary"]]]
"""Last hidden states of tokens, and the model's own logits at the last of them."""


def checked_output_layer(
    core: PreTrainedModel, name: str, read: Read, ids: Sequence[int], *, one_stack: bool
) -> FoundHead:
    """What gives the model's logits from its last hidden states.

    It is compared with the model's own logits on a text. Those of a model of one stack may not depend on later tokens.
    Costs two passes of the text, and two more of all but its last token for one stack.
    Raises UnsupportedError, and NonFiniteError for logits that are not finite.
    """
    with torch.no_grad():
        states, logits = read(ids)
        whole = logits.float()
        if not whole.isfinite().all():
            raise NonFiniteError(f"{name} returned NaN or infinite logits after a short text. {way_out(core.dtype)}")
        found = output_layer(core, states[-1:])
        single = core.dtype == torch.float32
        if not _equal(found.module(states[-len(whole) :]).float(), whole, 1e-3 if single else 0.05):
            raise _refused(core, name, "computes its logits in a way that is not known")
        if one_stack and len(ids) > 1 and not _equal(read(ids[:-1])[1].float(), whole[:-1], 1e-4 if single else 0.05):
            raise _refused(core, name, "reads later tokens, too, so that it does not predict the next one")
    return found


def _equal(one: Tensor, other: Tensor, tolerance: float) -> bool:
    return one.shape == other.shape and torch.allclose(
        one, other, rtol=tolerance, atol=tolerance * float(other.abs().max())
    )


def _refused(core: PreTrainedModel, name: str, reason: str) -> UnsupportedError:
    return UnsupportedError(
        f"cannot explain next tokens of {name}",
        [f"{type(core).__name__} {reason}"],
        "Use a causal model, such as Llama, Qwen, Gemma, Granite, Mistral or GPT-2, or a sequence classifier "
        "(`raison train classifier`).",
    )
