"""A setting that selects layers of a model, parsed before the model is known."""

import re
from dataclasses import dataclass

from raison.core.errors import InputError, UnsupportedError

LayerSpec = int | str | tuple[int, ...]
NAMED = {"last": -1, "third_last": -3}
_RANGE = re.compile(r"(top|bottom) (\d+)|(-?\d+) to (-?\d+)")
FORMS = (
    "'last', 'third_last', a number (0 is the first layer, -1 the last), '3 to 5', 'top 3' or 'bottom 3', "
    "or a tuple of different numbers"
)
"""What a specification may be, to follow "give"."""


@dataclass(frozen=True, slots=True)
class Layers:
    """Numbers of layers, those from the end on negative."""

    numbers: tuple[int, ...]

    @classmethod
    def of(cls, spec: LayerSpec, owner: str) -> "Layers":
        """Raises InputError for an invalid specification; `owner` is the method whose setting it is."""
        numbers = _numbers(spec)
        if not numbers or len(set(numbers)) < len(numbers):
            raise InputError(f"layers of {owner} cannot be {spec!r}: give {FORMS}.")
        return cls(numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def among(self, total: int) -> tuple[int, ...]:
        """The layer numbers in a model with `total` layers, counted from 0. Raises UnsupportedError if it lacks some
        of them.
        """
        if any(not -total <= number < total for number in self.numbers):
            raise UnsupportedError(
                f"the model has no layers {', '.join(map(str, self.numbers))}",
                [f"it has {total} attention layers, numbered from 0 to {total - 1}"],
                "Name fewer, such as 'last'.",
            )
        numbers = tuple(number % total for number in self.numbers)
        if len(set(numbers)) < len(numbers):
            raise UnsupportedError(
                f"layers {', '.join(map(str, self.numbers))} contain a layer twice", [f"the model has {total} layers"]
            )
        return numbers


def _numbers(spec: LayerSpec) -> tuple[int, ...]:
    if type(spec) is int:
        return (spec,)
    if isinstance(spec, tuple):
        return spec if all(type(number) is int for number in spec) else ()
    if not isinstance(spec, str):
        return ()
    if spec in NAMED:
        return (NAMED[spec],)
    match = _RANGE.fullmatch(spec)
    if match is None:
        return ()
    end, count, first, last = match.groups()
    if end is not None:
        return tuple(range(-1, -1 - int(count), -1)) if end == "top" else tuple(range(int(count)))
    ascending = range(int(first), int(last) + 1)
    return tuple(ascending) if (int(first) < 0) == (int(last) < 0) else ()
