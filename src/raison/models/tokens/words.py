"""Texts to encodings where only the text is known: the tokens are its words."""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b

from raison.core.encoding import Encoding
from raison.core.errors import InputError
from raison.core.unit import Granularity, Text, check_unit, segments
from raison.models.tokens.token_rows import TokenRow, stack
from raison.text.segment import Span, word_spans
from raison.text.units import find_units


class WordEncoder:
    """Splits texts into words, or pairs of texts where `pairs` is set. No text is too long.

    A token's id is a digest of its characters and of the white space around it: equal rows of ids are equal texts.
    """

    def __init__(self, *, pairs: bool) -> None:
        self.pairs = pairs

    def encode(self, texts: Sequence[Text], unit: Granularity) -> Encoding:
        """See LanguageModel.encode."""
        check_unit(unit)
        if not texts:
            raise InputError("no text to explain: give at least one.")
        rows = []
        for number, text in enumerate(texts):
            self._check_text(text, "the text" if len(texts) == 1 else f"text {number + 1} of {len(texts)}")
            rows.append(_row(text, unit))
        return stack(rows, unit, 0)

    def _check_text(self, text: Text, where: str) -> None:
        wanted = "a pair of two strings" if self.pairs else "a string"
        parts = segments(text) if isinstance(text, tuple if self.pairs else str) else ()
        if len(parts) != 1 + self.pairs or not all(isinstance(part, str) for part in parts):
            raise InputError(f"{where} is {text!r:.80}: this model takes {wanted}.")
        if any(not part.strip() for part in parts):
            raise InputError(f"{where} is empty or blank: there is nothing to explain.")


def _row(text: Text, unit: Granularity) -> TokenRow:
    ids: list[int] = []
    offsets: list[Span] = []
    owners: list[int] = []
    for number, string in enumerate(segments(text)):
        spans = word_spans(string)
        begins = [0, *(end for _, end in spans[:-1])]
        ends = [*(end for _, end in spans[:-1]), len(string)]
        ids += [_id(string[begin:end]) for begin, end in zip(begins, ends, strict=True)]
        offsets += spans
        owners += [number] * len(spans)
    units, unit_ids = find_units(text, offsets, owners, unit)
    return TokenRow(text, ids, owners, offsets, units, unit_ids)


@lru_cache(maxsize=1 << 16)
def _id(characters: str) -> int:
    # 56 bits: a positive number that an int64 holds.
    return int.from_bytes(blake2b(characters.encode("utf-8", "surrogatepass"), digest_size=7).digest(), "little")
