"""The precision in which perturbed texts are evaluated."""

from typing import Literal, get_args

from raison.core.errors import UnknownNameError

Precision = Literal["float32", "bfloat16"]
"""float32: the model's own precision, whatever it was loaded in. bfloat16: 16-bit weights and states."""
PRECISIONS: tuple[Precision, ...] = get_args(Precision)


def check_precision(name: str) -> None:
    """UnknownNameError unless it is a precision of evaluations."""
    if name not in PRECISIONS:
        raise UnknownNameError("precision", name, PRECISIONS)
