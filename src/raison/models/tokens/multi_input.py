"""Texts of several strings, some of which a model reads at a time, each text as one row of tokens."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from raison.core.errors import InputError
from raison.core.inputs.encoding import KINDS, Encoding
from raison.core.inputs.parts import Given, PartedText, plain
from raison.core.inputs.unit import PART, Granularity, Text, Unit, segments
from raison.models.tokens.token_rows import TokenRow, stack


@runtime_checkable
class Encoder(Protocol):
    """Texts to encodings."""

    def encode(self, texts: Sequence[Given], unit: Granularity, truncate: bool) -> Encoding:
        """See LanguageModel.encode."""


Read = tuple[int, ...]
"""The numbers of the strings that are read together."""


@dataclass(frozen=True, slots=True)
class MultiInputEncoder:
    """Rows of several reads: see raison.models.passes.outputs.multi_input_outputs.

    A string that is in several reads has its units only once.
    """

    inner: Encoder
    reads: tuple[Read, ...]
    pad_id: int
    wanted: str
    """The expected form of a text, for errors."""

    def encode(self, texts: Sequence[Given], unit: Granularity, truncate: bool) -> Encoding:
        """See LanguageModel.encode."""
        if not texts:
            raise InputError("no text to explain: give at least one.")
        for number, given in enumerate(texts):
            self._check(plain(given), "the text" if len(texts) == 1 else f"text {number + 1} of {len(texts)}")
        read = [self._encoded(texts, read_strings, unit, truncate) for read_strings in self.reads]
        rows = [self._row(plain(given), row, read) for row, given in enumerate(texts)]
        return stack(rows, unit, self.pad_id)

    def _check(self, text: Text, where: str) -> None:
        strings = 1 + max(max(read) for read in self.reads)
        parts = text if isinstance(text, tuple) else ()
        if len(parts) != strings or not all(isinstance(part, str) for part in parts):
            raise InputError(f"{where} is {text!r:.80}: this model takes {self.wanted}.")

    def _encoded(self, texts: Sequence[Given], read: Read, unit: Granularity, truncate: bool) -> Encoding:
        """One read of every text, without units if it contains none of the caller's parts."""
        parts = [_read_of(given, read) for given in texts]
        bare = [not isinstance(one, PartedText) for one in parts]
        if unit != PART or not any(bare):
            return self.inner.encode(parts, unit, truncate)
        # A read may contain none of a text's parts: it is then encoded by itself, and all of it is context.
        rows = []
        for one, no_part in zip(parts, bare, strict=True):
            row = _row_of(self.inner.encode([one], "token" if no_part else PART, truncate))
            rows.append(replace(row, units=(), unit_ids=[-1] * len(row.ids)) if no_part else row)
        return stack(rows, unit, self.pad_id)

    def _row(self, text: Text, row: int, read: Sequence[Encoding]) -> TokenRow:
        units: list[Unit] = []
        numbers: dict[UnitKey, int] = {}
        rows = []
        for place, (strings, encoding) in enumerate(zip(self.reads, read, strict=True)):
            read_units = [replace(unit, segment=strings[unit.segment]) for unit in encoding.units[row]]
            _check_same(units, read_units)
            for unit in read_units:
                if _key_of(unit) not in numbers:
                    numbers[_key_of(unit)] = len(units)
                    units.append(unit)
            mapped = [numbers[_key_of(unit)] for unit in read_units]
            one = _row_of(encoding.select([row]))
            unit_ids = [-1 if unit < 0 else mapped[unit] for unit in one.unit_ids]
            rows.append(replace(one, types=[kind + KINDS * place for kind in one.types], unit_ids=unit_ids))
        return TokenRow(
            text,
            [token for one in rows for token in one.ids],
            [kind for one in rows for kind in one.types],
            [offset for one in rows for offset in one.offsets],
            tuple(units),
            [unit for one in rows for unit in one.unit_ids],
            sum(encoding.truncated[row] for encoding in read),
        )


UnitKey = tuple[int, int, int]


def _key_of(unit: Unit) -> UnitKey:
    return unit.segment, unit.start, unit.end


def _check_same(known: Sequence[Unit], other: Sequence[Unit]) -> None:
    """InputError if a string that is read several times was cut at different places."""
    for segment in {unit.segment for unit in known} & {unit.segment for unit in other}:
        if [unit for unit in known if unit.segment == segment] != [unit for unit in other if unit.segment == segment]:
            raise InputError("the first text is cut off at different places in the two pairs: shorten the texts.")


def _read_of(given: Given, read: Read) -> Given:
    """The strings of a text that one read contains, with their parts."""
    strings = segments(plain(given))
    text: Text = strings[read[0]] if len(read) == 1 else (strings[read[0]], strings[read[1]])
    if not isinstance(given, PartedText):
        return text
    parts = tuple(replace(part, segment=read.index(part.segment)) for part in given.parts if part.segment in read)
    return PartedText(text, parts, given.found) if parts else text


def _row_of(encoding: Encoding) -> TokenRow:
    """The first text of an encoding."""
    length = encoding.lengths[0]
    offsets = [(int(start), int(end)) for start, end in encoding.offsets[0, :length].tolist()]
    ids, types = encoding.input_ids[0, :length].tolist(), encoding.type_ids[0, :length].tolist()
    unit_ids = encoding.unit_ids[0, :length].tolist()
    return TokenRow(encoding.texts[0], ids, types, offsets, encoding.units[0], unit_ids, encoding.truncated[0])
