"""Texts whose units the caller names: fields of a form, retrieved passages, shots, messages."""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, SupportsIndex

from raison.core.errors import InputError
from raison.core.inputs.unit import PART, Text, Unit, segments

CharacterRange = Sequence[SupportsIndex]
"""[start, end] in characters, counted from 0, `end` not included; in a pair [start, end, number of the text]."""
Spans = Sequence[CharacterRange] | Mapping[str, CharacterRange]
"""Where the parts of a text are, in the order of the text, with or without names."""


@dataclass(frozen=True, slots=True)
class PartedText:
    """A text with its parts, each of which is a unit. The text outside them is never removed and never scored.

    The parts must be in the order of the text, without overlaps, and each with a character that is not white space.
    Raises InputError otherwise. Parts that were `found` as words or sentences, and not given by a caller, are joined
    where they meet inside a token, and left out where the tokenizer drops all of their characters.
    """

    text: Text
    parts: tuple[Unit, ...]
    found: bool = False

    def __post_init__(self) -> None:
        if not self.parts:
            raise InputError("no unit given: give at least one span, or use unit='word'.")
        after = (0, 0)
        for number, part in enumerate(self.parts):
            _check_part(part, segments(self.text), spelled(part, number))
            if (part.segment, part.start) < after:
                before = spelled(self.parts[number - 1], number - 1)
                raise InputError(
                    f"{spelled(part, number)} begins before {before} ends: list units in the order of the text, "
                    "without overlaps."
                )
            after = (part.segment, part.end)


Given = Text | PartedText
"""A text as the caller gives it."""


def parted(text: Text, spans: Any) -> PartedText:
    """A text with the parts at `spans` (see Spans). Raises InputError for invalid spans."""
    named = isinstance(spans, Mapping)
    if not named and (isinstance(spans, str | bytes) or not isinstance(spans, Sequence)):
        raise InputError(f"units are {spans!r:.60}: give [(start, end), ...] or {{name: (start, end), ...}}.")
    pairs = spans.items() if named else [("", span) for span in spans]
    strings = segments(text)
    return PartedText(text, tuple(_part(name, span, strings, number) for number, (name, span) in enumerate(pairs)))


def again(text: Text, units: tuple[Unit, ...], unit: str) -> Given:
    """The text in a form that gives the same units again, of kind `unit`."""
    return PartedText(text, units) if unit == PART else text


def plain(given: Given) -> Text:
    """The text without its parts."""
    return given.text if isinstance(given, PartedText) else given


def written(given: Given) -> object:
    """The text as JSON values: itself, or with its parts."""
    if not isinstance(given, PartedText):
        return given
    return {"text": given.text, "units": [[p.start, p.end, p.segment, p.name] for p in given.parts]}


def spelled(part: Unit, number: int) -> str:
    """The name of a part in errors: its name, or its number and characters."""
    return f"the unit '{part.name}'" if part.name else f"unit {number} ({part.start} to {part.end})"


def _part(name: object, span: Any, strings: Sequence[str], number: int) -> Unit:
    if not isinstance(name, str):
        raise InputError(f"the unit name {name!r:.40} is not a string.")
    try:
        numbers = [operator.index(place) for place in span]
    except TypeError:
        numbers = []
    if len(numbers) not in (2, 3) or isinstance(span, str | bytes) or any(isinstance(place, bool) for place in span):
        raise InputError(
            f"{_called(name, number)} is {span!r:.40}: a span is (start, end) in characters, in a pair (start, end, "
            "number of the text)."
        )
    start, end, segment = (*numbers, 0)[:3]
    string = strings[segment] if 0 <= segment < len(strings) else ""
    return Unit(start, end, string[max(start, 0) : max(end, 0)], segment, name)


def _called(name: str, number: int) -> str:
    return f"the unit '{name}'" if name else f"unit {number}"


def _check_part(part: Unit, strings: Sequence[str], called: str) -> None:
    if not 0 <= part.segment < len(strings):
        raise InputError(f"{called} is in text number {part.segment}, but there are {len(strings)}, counted from 0.")
    length = len(strings[part.segment])
    if not 0 <= part.start <= part.end <= length:
        raise InputError(f"{called} is out of range: {part.start} to {part.end} of a text of {length} characters.")
    if not strings[part.segment][part.start : part.end].strip():
        raise InputError(f"{called} is empty or blank: a unit needs at least one character that is not white space.")
