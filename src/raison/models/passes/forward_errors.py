"""Errors that a model's own forward function raises, told as such."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import torch
from transformers import PreTrainedModel

from raison.core.errors import ForwardError, RaisonError

_KINDS = (RuntimeError, TypeError, ValueError, LookupError, AttributeError, AssertionError)
_SEEN_THROUGH = ("torch", "contextlib")
"""Packages that only pass on what their caller asks for."""
_NO_ROOM = ("allocate memory", "not enough memory", "out of memory")
"""What torch's errors say of a lack of memory where they have no kind of their own, as on a processor."""
_MOST = 200
"""Characters of the model's message."""


@contextmanager
def as_forward_error(model: PreTrainedModel) -> Iterator[None]:
    """Raise ForwardError for an error in the model's own code. What hooks raise stays as it is, and so does a lack of
    memory, which on a processor becomes what it is on a device: torch.OutOfMemoryError."""
    try:
        yield
    except _KINDS as error:
        if isinstance(error, torch.OutOfMemoryError | RaisonError):
            raise
        if any(said in str(error) for said in _NO_ROOM):
            raise torch.OutOfMemoryError(str(error)) from error
        if not _is_own(error, model):
            raise
        message = " ".join([f"{type(error).__name__}:", *str(error).split()]).rstrip(".:")
        raise ForwardError(
            f"the forward function of {type(model).__name__} fails",
            [message[:_MOST]],
            _way_out(model, message),
        ) from error


def _way_out(model: PreTrainedModel, message: str) -> str:
    if "nference tensor" in message:
        return (
            "It was made inside torch.inference_mode(): make it outside, or explain its copy, copy.deepcopy(model), "
            "which has to be made outside, too."
        )
    types = sorted({one.dtype for one in model.parameters() if one.is_floating_point()}, key=_bits)
    if "dtype" in message and len(types) > 1:
        named = " and ".join(str(one).removeprefix("torch.") for one in types)
        return (
            f"Its parameters are of {named}, and a caller's autocast does not apply here: convert them to one, such as "
            f"model.to({types[-1]})."
        )
    return (
        "It was given ids and an attention mask, as its tokenizer makes them: a model that needs more, such as "
        "tables, is explained as a function, raison.load(function, classes=[...])."
    )


def _bits(kind: torch.dtype) -> int:
    return torch.finfo(kind).bits


def _is_own(error: BaseException, model: PreTrainedModel) -> bool:
    """Whether the innermost code that is not torch's is that of transformers, or of the package of the model."""
    frames: list[FrameType] = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    packages = [str(frame.f_globals.get("__name__", "")).partition(".")[0] for frame in frames]
    inner = [package for package in packages if package not in _SEEN_THROUGH]
    return bool(inner) and inner[-1] in ("transformers", type(model).__module__.partition(".")[0])
