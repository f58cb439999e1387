"""What an adapter of models returned, checked before it is used: a mistake in an adapter must not become scores."""

from collections.abc import Sequence

from jaxtyping import Bool, Float
from torch import Tensor

from raison.core.errors import AnswerError, NonFiniteError
from raison.core.inputs.encoding import Encoding
from raison.core.model import LanguageModel


def checked_logits(
    model: LanguageModel, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], removal: str
) -> list[Float[Tensor, "_masks classes"]]:
    """`model.masked_logits`. Raises AnswerError unless there are logits of every text, keep and class.

    Infinite ones are allowed, since they stand for a probability of 0 or 1; NaN is a NonFiniteError.
    """
    returned: object = model.masked_logits(encoding, keeps, removal)
    function = f"{type(model).__name__}.masked_logits"
    if not isinstance(returned, list | tuple) or len(returned) != len(keeps):
        found = f"{len(returned)} tensors" if isinstance(returned, list | tuple) else type(returned).__name__
        raise AnswerError(
            f"{function} returned {found} for {len(keeps)} texts: it has to return a list with a tensor for each."
        )
    for text, (logits, rows) in enumerate(zip(returned, keeps, strict=True)):
        if not _fits(logits, len(rows), encoding, model):
            raise AnswerError(
                f"{function} returned {_described(logits)} for {str(encoding.texts[text])!r:.60}: it has to return a "
                f"tensor of floats on the CPU, {len(rows)} keeps x {len(model.classes)} classes."
            )
        # If one number is NaN, the largest is, too.
        if logits.numel() and logits.amax().isnan():
            raise NonFiniteError(f"{function} returned NaN for {str(encoding.texts[text])!r:.60}.")
    return list(returned)


def _fits(logits: object, rows: int, encoding: Encoding, model: LanguageModel) -> bool:
    if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != rows:
        return False
    # At places, one class may stand for all that are no choice there. Without keeps, no class has a logit.
    classes = encoding.reading is not None or not rows or logits.shape[1] == len(model.classes)
    return classes and logits.is_floating_point() and logits.device.type == "cpu"


def _described(found: object) -> str:
    """What was returned in place of logits."""
    if not isinstance(found, Tensor):
        return f"something of type {type(found).__name__}"
    shape = " x ".join(map(str, found.shape)) or "none"
    return f"a tensor of shape {shape} and type {str(found.dtype).removeprefix('torch.')} on {found.device}"
