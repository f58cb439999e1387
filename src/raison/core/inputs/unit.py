"""The unit that receives a score: a character span of the text."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, get_args

from raison.core.errors import UnknownNameError

Text = str | tuple[str, str] | tuple[str, str, str]
"""What is explained: one text, a pair such as premise and hypothesis, or a query and two documents of a ranking."""
Side = Literal["first", "second", "third"]
SIDES: tuple[Side, ...] = get_args(Side)
"""Which string of a multi-string text has the units, by `units=`; the others are held fixed."""

Granularity = Literal["token", "word", "sentence", "part"]
Merge = Literal["max", "mean"]
"""How a unit's score is made from its tokens' scores if these are not additive."""
SPLITS: tuple[Granularity, ...] = ("token", "word", "sentence")
"""The units that every text can be split into."""
PART: Granularity = "part"
"""Parts that the caller names; see raison.core.inputs.parts."""
GRANULARITIES: tuple[Granularity, ...] = (*SPLITS, PART)


@dataclass(frozen=True, slots=True)
class Unit:
    """A token, word or sentence, or a part that the caller named.

    `text` equals the characters `start` to `end` of the text, or of its string number `segment` if it has several.
    `name` is the name given by the caller, "" if there is none.
    """

    start: int
    end: int
    text: str
    segment: int = 0
    name: str = ""

    @property
    def label(self) -> str:
        """The name that views show: its name, or its text if it has none."""
        return self.name or self.text

    def to_dict(self) -> dict[str, object]:
        """Plain JSON values; `name` only if there is one."""
        values: dict[str, object] = {"start": self.start, "end": self.end, "text": self.text, "segment": self.segment}
        return values | {"name": self.name} if self.name else values


def check_unit(unit: str) -> Granularity:
    """The same, known to be one of GRANULARITIES. Raises UnknownNameError."""
    for known in GRANULARITIES:
        if unit == known:
            return known
    raise UnknownNameError("unit", unit, GRANULARITIES)


def blank(where: str, text: Text) -> str | None:
    """The error text for a text with a string that is empty or blank; None if there is none."""
    strings = segments(text)
    empty = [number for number, string in enumerate(strings) if not string.strip()]
    if not empty:
        return None
    which = "" if len(empty) == len(strings) else f" in its {('first', 'second', 'third')[empty[0]]} string"
    return f"{where} is empty or blank{which}: there is nothing to explain."


def segments(text: Text) -> tuple[str, ...]:
    """The strings of a text."""
    return (text,) if isinstance(text, str) else text


def lacks_beginning(text: Text, units: Sequence[Unit]) -> bool:
    """Whether there is text before the first unit of a string. Parts that the caller named do not tell."""
    strings, starts = segments(text), {unit.segment: unit.start for unit in reversed(units)}
    return any(strings[number][:start].strip() for number, start in starts.items())


def joined(like: Text, strings: Sequence[str]) -> Text:
    """Strings as a text with the same number of strings as another; the inverse of `segments`."""
    if isinstance(like, str):
        return strings[0]
    return (strings[0], strings[1]) if len(like) == 2 else (strings[0], strings[1], strings[2])


def runs_of(units: Sequence[Unit]) -> list[list[int]]:
    """The numbers of the units in each run with the same name; a unit without a name is by itself."""
    return [list(run) for _, run in groupby(range(len(units)), key=lambda i: units[i].name or i)]
