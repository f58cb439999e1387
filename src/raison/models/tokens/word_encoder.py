"""Texts to encodings without a tokenizer: the tokens are the words."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import pairwise

from raison.core.errors import InputError
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.parts import Given, PartedText, plain
from raison.core.inputs.unit import PART, Granularity, check_unit, segments
from raison.models.tokens.token_rows import TokenRow, numbered, stack
from raison.text.segment import CharacterSpan, word_spans
from raison.text.units import find_units


class WordEncoder:
    """Splits texts of a fixed number of strings into words. No text is too long.

    A word in which one of the caller's parts begins or ends is cut there. A token's id is a digest of its characters
    and of the white space around it: equal rows of ids are equal texts.
    """

    def __init__(self, strings: int) -> None:
        self.strings = strings

    def encode(self, texts: Sequence[Given], unit: Granularity) -> Encoding:
        """See LanguageModel.encode."""
        check_unit(unit)
        rows = []
        for where, text in numbered(texts):
            self._check_text(text, where)
            rows.append(_row(text, unit))
        return stack(rows, unit, 0)

    def _check_text(self, given: Given, where: str) -> None:
        text = plain(given)
        wanted = {1: "a string", 2: "a pair of two strings", 3: "a query and two documents"}[self.strings]
        parts = segments(text) if isinstance(text, str if self.strings == 1 else tuple) else ()
        if len(parts) != self.strings or not all(isinstance(part, str) for part in parts):
            raise InputError(f"{where} is {text!r:.80}: this model takes {wanted}.")
        if any(not part.strip() for part in parts):
            raise InputError(f"{where} is empty or blank: there is nothing to explain.")


def _row(given: Given, unit: Granularity) -> TokenRow:
    text = plain(given)
    ids: list[int] = []
    offsets: list[CharacterSpan] = []
    owners: list[int] = []
    for number, string in enumerate(segments(text)):
        spans = _cut(word_spans(string), _borders(given, number) if unit == PART else [])
        begins = [0, *(end for _, end in spans[:-1])]
        ends = [*(end for _, end in spans[:-1]), len(string)]
        ids += [_id(string[begin:end]) for begin, end in zip(begins, ends, strict=True)]
        offsets += spans
        owners += [number] * len(spans)
    units, unit_ids = find_units(given, offsets, owners, unit)
    return TokenRow(text, ids, owners, offsets, units, unit_ids)


def _borders(given: Given, segment: int) -> list[int]:
    """Where the parts of one string begin and end, in order."""
    parts = given.parts if isinstance(given, PartedText) else ()
    return sorted({place for part in parts if part.segment == segment for place in (part.start, part.end)})


def _cut(spans: Sequence[CharacterSpan], borders: Sequence[int]) -> list[CharacterSpan]:
    """The spans, each cut at the borders inside it."""
    return [
        piece
        for start, end in spans
        for piece in pairwise([start, *borders[bisect_right(borders, start) : bisect_left(borders, end)], end])
    ]


@lru_cache(maxsize=1 << 16)
def _id(characters: str) -> int:
    # 56 bits: a positive number that an int64 holds.
    return int.from_bytes(blake2b(characters.encode("utf-8", "surrogatepass"), digest_size=7).digest(), "little")
