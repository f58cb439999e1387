"""What two texts, or two sequences of tokens or of units, have in common from their beginning."""

from collections.abc import Sequence


def common_length(first: Sequence[object], second: Sequence[object]) -> int:
    """The number of entries until the first that differs."""
    pairs = enumerate(zip(first, second, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(first), len(second)))
