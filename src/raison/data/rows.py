"""From records to rows."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, cast

from raison.core.errors import DataError, InputError
from raison.core.inputs.missing import is_missing
from raison.core.inputs.rationale import Rationale
from raison.core.inputs.unit import Text, Unit
from raison.data.answer_spans import parse_answers
from raison.data.columns import Column, ColumnLayout, Wanted, layout_of
from raison.data.dataset import BrokenLine, Contrast, Label, Row
from raison.data.lines import SAMPLE, LineRecord
from raison.data.spans import parse_rationales, parse_units

Entry = Row | BrokenLine
"""The result of reading one line of a source."""

Collected = tuple[tuple[Row, ...], tuple[BrokenLine, ...]]


@dataclass(frozen=True, slots=True)
class ReadRows:
    """A source's rows and broken lines, which columns were used as text and label, the label's column, and the least
    and greatest numeric label of the whole source."""

    rows: tuple[Row, ...]
    broken: tuple[BrokenLine, ...]
    taken: str
    label: Column | None
    numbers: tuple[int, int] | None


_INTEGER = re.compile(r"[+-]?\d{1,9}")


@dataclass(frozen=True, slots=True)
class LaidOut:
    """A source's records after its header, one at a time, their layout, and the first of its records."""

    records: Iterator[LineRecord]
    layout: ColumnLayout
    first: LineRecord


def rows_from(
    records: Iterator[LineRecord], source: str, wanted: Wanted, limit: int | None, skip_bad: bool
) -> ReadRows:
    """Records of unknown layout as rows. `source` names them in errors. Raises DataError as `load_file` does."""
    table = laid_out(records, source, wanted)
    stream = entries(table.records, table.layout, labelled=skip_bad)
    rows, broken = collect(stream, source, limit, skip_bad)
    rows = typed_labels(rows)
    numbers = _numbers_of(rows, stream)
    return ReadRows(rows, broken, table.layout.described(table.first), table.layout.label, numbers)


def _numbers_of(rows: tuple[Row, ...], rest: Iterator[Entry]) -> tuple[int, int] | None:
    """The least and the greatest numeric label. What is left of the source is read only up to a label 0, without which
    the rows alone do not tell whether labels count from 0 or from 1."""
    numbers = [row.label for row in rows if isinstance(row.label, int)]
    if not numbers:
        return None
    least, greatest = min(numbers), max(numbers)
    while least > 0:
        try:
            entry = next(rest, None)
        except (DataError, OSError, ValueError):
            # Rows that were not asked for need not be readable.
            break
        if entry is None:
            break
        label = entry.label if isinstance(entry, Row) else None
        if label is not None and _INTEGER.fullmatch(str(label)):
            least, greatest = min(least, int(label)), max(greatest, int(label))
    return least, greatest


def laid_out(records: Iterator[LineRecord], source: str, wanted: Wanted) -> LaidOut:
    """Find the layout from the first records. Raises DataError."""
    head = list(islice(records, SAMPLE))
    good = [record for record in head if not record.broken]
    if not good:
        raise DataError(f"{source} has no rows" + (f"; line {head[0].number}: {head[0].broken}." if head else "."))
    try:
        layout = layout_of(good, wanted, source.lower().endswith(".csv"))
    except DataError as error:
        raise DataError(f"{source}: {error}") from None
    data = (record for record in chain(head, records) if not (layout.header and record is good[0]))
    return LaidOut(data, layout, good[0])


def entries(records: Iterable[LineRecord], layout: ColumnLayout, labelled: bool = False) -> Iterator[Entry]:
    """Each record as a row or as a broken line; labels are not converted. If `labelled`, every row has one."""
    return (entry_of(record, layout, labelled) for record in records)


def entry_of(record: LineRecord, layout: ColumnLayout, labelled: bool = False) -> Entry:
    """A record as a row or as a broken line, which a record without a label is if `labelled`."""
    reason = record.broken or _fault(record, layout, labelled)
    try:
        return BrokenLine(record.number, reason) if reason else _row(record, layout)
    except ValueError as error:
        return BrokenLine(record.number, str(error))


def collect(stream: Iterator[Entry], source: str, limit: int | None, skip_bad: bool) -> Collected:
    """The first `limit` rows; later ones are not read.

    Raises DataError at the first broken line unless `skip_bad` is set, and if no row can be used.
    """
    rows, broken = first_rows(stream, limit, skip_bad, lambda line: f"{source}, line {line.number}: {line.reason}.")
    if not rows:
        left_out = f" ({len(broken)} left out; line {broken[0].number}: {broken[0].reason})" if broken else ""
        raise DataError(f"{source} has no usable rows{left_out}.")
    return rows, broken


def first_rows(
    stream: Iterator[Entry], limit: int | None, skip_bad: bool, told: Callable[[BrokenLine], str]
) -> Collected:
    """The first `limit` rows, and the broken lines before the last of them; later ones are not read.

    Raises InputError for a limit below 1, and DataError at the first broken line, as it is `told`, unless `skip_bad` is
    set.
    """
    if limit is not None and limit < 1:
        raise InputError(f"limit cannot be {limit}: it is the number of rows to take, at least 1.")
    rows: list[Row] = []
    broken: list[BrokenLine] = []
    while limit is None or len(rows) < limit:
        entry = next(stream, None)
        if entry is None:
            break
        if isinstance(entry, Row):
            rows.append(entry)
        elif skip_bad:
            broken.append(entry)
        else:
            raise DataError(f"{told(entry)} --skip-bad (skip_bad=True) skips it.")
    return tuple(rows), tuple(broken)


def _fault(record: LineRecord, layout: ColumnLayout, labelled: bool) -> str:
    cells = record.cells
    if layout.width is not None and len(cells) != layout.width:
        return f"{len(cells)} cells instead of {layout.width}"
    for column in chain(*layout.texts):
        value = _cell(cells, column)
        if not isinstance(value, str):
            return f"no text in {layout.called(column)}"
    if not all(text.strip() for text in _texts(cells, layout)):
        return "the text is blank"
    if layout.contrast is not None and not _is_contrast(_cell(cells, layout.contrast)):
        return f"no contrast class in {layout.called(layout.contrast)}"
    if layout.label is None:
        return ""
    value = _cell(cells, layout.label)
    if isinstance(value, list | dict) or (labelled and _has_none(value)):
        return f"no label in {layout.called(layout.label)}"
    return ""


def _has_none(label: object) -> bool:
    """Whether a label's cell is empty, or what tables write for it."""
    return is_missing(label) or not str(label).strip()


def _cell(cells: list[Any] | Mapping[str, Any], column: Column) -> Any:
    if isinstance(cells, Mapping):
        return cells.get(str(column))
    return cells[int(column)]


def _texts(cells: list[Any] | Mapping[str, Any], layout: ColumnLayout) -> tuple[str, ...]:
    return tuple(" ".join(_cell(cells, column) for column in group) for group in layout.texts)


def _row(record: LineRecord, layout: ColumnLayout) -> Row:
    texts = _texts(record.cells, layout)
    text = cast("Text", texts[0] if len(texts) == 1 else texts)
    label: Label = None
    if layout.label is not None:
        value = _cell(record.cells, layout.label)
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        label = None if _has_none(value) else int(value) if whole else str(value).strip()
    answers = () if layout.answers is None else parse_answers(_cell(record.cells, layout.answers), texts[1])
    rationales, units = _rationales(record, layout, texts), _units(record, layout, text)
    return Row(text, label, record.number, rationales, answers, units, _contrast(record, layout))


def _is_contrast(value: object) -> bool:
    """A word, a number, or a list of these."""
    if isinstance(value, list):
        return bool(value) and all(not isinstance(one, list) and _is_contrast(one) for one in value)
    return bool(value.strip()) if isinstance(value, str) else type(value) is int


def _contrast(record: LineRecord, layout: ColumnLayout) -> Contrast | None:
    value = None if layout.contrast is None else _cell(record.cells, layout.contrast)
    return tuple(value) if isinstance(value, list) else value


def _units(record: LineRecord, layout: ColumnLayout, text: Text) -> tuple[Unit, ...]:
    value = None if layout.units is None else _cell(record.cells, layout.units)
    return parse_units(value, text) if value else ()


def _rationales(record: LineRecord, layout: ColumnLayout, texts: tuple[str, ...]) -> tuple[Rationale, ...]:
    value = None if layout.rationale is None else _cell(record.cells, layout.rationale)
    return () if value is None else parse_rationales(value, texts)


def typed_labels(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """The rows with labels that are all numbers, or all strings; None stays None."""
    # A single label that is no number makes all of them names: next to "one", "1" is not the number 1.
    numeric = all(isinstance(row.label, int | None) or _INTEGER.fullmatch(row.label) for row in rows)
    kind = int if numeric else str
    return tuple(replace(row, label=None if row.label is None else kind(row.label)) for row in rows)
