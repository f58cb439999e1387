"""The unit that receives a score: a character span of the text."""

from dataclasses import dataclass
from typing import Literal

from raison.core.errors import UnknownNameError

Text = str | tuple[str, str]
"""What is explained: one text, or a pair such as premise and hypothesis."""

Granularity = Literal["token", "word", "sentence"]
Merge = Literal["max", "mean"]
"""A unit's score of its tokens' scores, where these are shares that do not add up."""
GRANULARITIES: tuple[Granularity, ...] = ("token", "word", "sentence")


@dataclass(frozen=True, slots=True)
class Unit:
    """A token, word or sentence.

    `text` equals the characters `start` to `end` of the text, or of the pair's text number `segment` (0 or 1).
    """

    start: int
    end: int
    text: str
    segment: int = 0


def check_unit(unit: str) -> Granularity:
    """The same, known to be "token", "word" or "sentence". Raises UnknownNameError."""
    for known in GRANULARITIES:
        if unit == known:
            return known
    raise UnknownNameError("unit", unit, GRANULARITIES)


def segments(text: Text) -> tuple[str, ...]:
    """The one or two strings of a text."""
    return (text,) if isinstance(text, str) else text
