"""The place in a text where an explained prediction is made. Plain numbers: this file never needs torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from raison.core.errors import DataError
from raison.core.settings.reading import Fields

PlaceKind = Literal["entity", "mask", "statement"]
"""A span that has a tag, a masked word, or a part of what a language model wrote."""


@dataclass(frozen=True, slots=True)
class Place:
    """Characters `start` to `end` (not included) of one of the text's strings, and what they are.

    `predicted` is what the model says there: a tag, or the likeliest word. `tokens` are the explained word's number in
    the vocabulary and that of the word that it is contrasted with: with a space before it, a word that is written alike
    is another one.
    """

    kind: PlaceKind
    start: int
    end: int
    text: str
    predicted: str
    segment: int = 0
    tokens: tuple[int, ...] = ()

    @classmethod
    def read(cls, data: Any, strings: Sequence[str]) -> "Place":
        """The inverse of `dataclasses.asdict`, for a place in one of these strings. Raises DataError."""
        if not isinstance(data, Mapping):
            raise DataError(f"not an explanation: its place is {data!r:.40}; it must be an object.")
        record = Fields(dict(data), "an explanation: the place")
        record.need(["kind", "start", "end", "text", "predicted", "segment"])
        for name in ("start", "end", "segment"):
            record.whole(name)
        for name in ("text", "predicted"):
            record.string(name)
        tokens = record.wholes("tokens") if "tokens" in data else ()
        if data["kind"] not in get_args(PlaceKind) or data["segment"] >= len(strings):
            record.refuse("kind", f"one of {get_args(PlaceKind)}, in one of the texts")
        if data["end"] > len(strings[data["segment"]]):
            record.refuse("end", "within the text")
        return cls(
            **{name: data[name] for name in ("kind", "start", "end", "text", "predicted", "segment")}, tokens=tokens
        )
