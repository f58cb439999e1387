"""Sources of any size, read one row at a time: files, patterns of files, data sets of the Hub, named data sets."""

import glob
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Annotated

from raison.core.errors import DataError, InputError
from raison.core.inputs.missing import is_missing
from raison.core.settings.fields import Setting, check
from raison.data.columns import Column, ColumnLayout, DelimiterSetting, EncodingSetting, Wanted, column_of, id_column
from raison.data.dataset import BrokenLine, Row
from raison.data.files import KINDS, records_of
from raison.data.lines import LineRecord
from raison.data.named import load_named, named
from raison.data.rows import Entry, entry_of, laid_out


@dataclass(frozen=True, slots=True)
class Reading:
    """How sources are read: the same columns in all of them."""

    text_column: Annotated[Column | None, Setting("Column of the text: its name, or its number from 0.")] = None
    pair_column: Annotated[Column | None, Setting("Column of the second text of a pair.")] = None
    contrast_column: Annotated[
        Column | None,
        Setting(
            "Column of what each text's explanation contrasts with the target: another class, or a word for a "
            "generative model."
        ),
    ] = None
    output_column: Annotated[
        Column | None,
        Setting("Column of the output to explain, with its leading space, instead of the model's own output."),
    ] = None
    id_column: Annotated[Column | None, Setting("Column of the rows' ids; by default id or idx, or file:line.")] = None
    label_column: Annotated[Column | None, Setting("Column of the rows' labels, which are copied to the output.")] = (
        None
    )
    delimiter: DelimiterSetting = None
    split: Annotated[str, Setting("Split of a data set from the Hub.")] = "test"
    encoding: EncodingSetting = "utf-8"
    limit: Annotated[int | None, Setting("Use only the first N rows.", least=1)] = None

    def __post_init__(self) -> None:
        check(self)

    @property
    def wanted(self) -> Wanted:
        """The columns. Raises DataError."""
        if self.pair_column is None:
            return Wanted(
                text=self.text_column,
                label=self.label_column,
                delimiter=self.delimiter,
                contrast=self.contrast_column,
            )
        if self.text_column is None:
            raise DataError("pair_column needs text_column: name both texts of the pair.")
        pair = (self.text_column, self.pair_column)
        return Wanted(pair=pair, label=self.label_column, delimiter=self.delimiter, contrast=self.contrast_column)


@dataclass(frozen=True, slots=True)
class Item:
    """A row of a source, or a line that cannot be used; `row` is its number among all sources, counted from 0.

    `label` is its own label as in the source, "" without one.
    """

    row: int
    source: str
    id: str
    label: str
    entry: Entry

    @property
    def line(self) -> int:
        """Its place in the source."""
        return self.entry.number


def sources_of(given: Sequence[str | Path]) -> tuple[str, ...]:
    """Every file, data set or id; a pattern (*, ?, [) stands for the matching files, sorted by name.

    Raises DataError if it matches none, and InputError for a table or anything else that names no file.
    """
    # A table goes through its columns' names, and an object through its keys.
    holds_data = isinstance(given, Mapping) or hasattr(given, "columns")
    paths: list[object] = [given] if holds_data else [*given]
    for path in paths:
        if not isinstance(path, str | Path):
            raise InputError(
                f"files are named by a path, or by paths in a list, and not by a {type(path).__name__}: write it to a "
                "file, or give its texts to explain()."
            )
    sources: list[str] = []
    for one in map(str, paths):
        if not glob.has_magic(one) or Path(one).exists():
            sources.append(one)
            continue
        files = sorted(path for path in glob.glob(one, recursive=True) if Path(path).is_file())
        if not files:
            raise DataError(f"no file matches the pattern {one}.")
        sources += files
    if not sources:
        raise DataError("there is nothing to read: name a file, a pattern or a data set.")
    return tuple(sources)


def stream(sources: Sequence[str], reading: Reading) -> Iterator[Item]:
    """The rows of all sources in their order, one in memory at a time, up to the limit. Raises DataError."""
    entries = ((source, *one) for source in sources for one in _entries(source, reading))
    for row, (source, row_id, label, entry) in enumerate(islice(entries, reading.limit)):
        yield Item(row, source, row_id or f"{Path(source).name}:{entry.number}", label, entry)


def columns_taken(source: str, reading: Reading) -> str:
    """Which columns of a source are used as text and label; "" for a named data set, whose columns are known.

    Raises DataError.
    """
    name = source.partition(":")[0]
    if name in named():
        _refuse_columns(name, reading)
        return ""
    with _explained(source):
        laid = laid_out(_records(source, reading), source, reading.wanted)
        return laid.layout.described(laid.first)


def _refuse_columns(name: str, reading: Reading) -> None:
    """Raise DataError if a named data set is to be read as a file of the caller's."""
    others = reading.output_column, reading.id_column
    if reading.wanted != Wanted() or any(one is not None for one in others) or reading.encoding != Reading().encoding:
        raise DataError(
            f"'{name}' is a named data set with known columns: leave out the column names, the delimiter and the "
            "encoding."
        )


@contextmanager
def _explained(source: str) -> Iterator[None]:
    """Raise DataError for a source that cannot be read."""
    try:
        yield
    except LookupError as error:
        raise DataError(f"cannot read {source}: {error}.") from None
    except OSError as error:
        raise DataError(f"cannot read {source}: {error.strerror or error}.") from None


def _entries(source: str, reading: Reading) -> Iterator[tuple[str, str, Entry]]:
    """Each row with its own id and label, "" without one."""
    name, _, split = source.partition(":")
    if name in named():
        _refuse_columns(name, reading)
        data = load_named(name, split or reading.split, None, None, skip_bad=True)
        entries: list[Entry] = [*data.rows, *data.broken]
        for entry in sorted(entries, key=lambda entry: entry.number):
            label = entry.label if isinstance(entry, Row) else None
            yield "", "" if label is None else data.labels[label] if isinstance(label, int) else label, entry
        return
    with _explained(source):
        laid = laid_out(_records(source, reading), source, reading.wanted)
        ids_from = id_column(laid.layout, laid.first, reading.id_column)
        output_column = reading.output_column
        output = None if output_column is None else column_of(laid.layout, laid.first, output_column)
        # A row without a label is explained like any other.
        layout = replace(laid.layout, label=None)
        for record in laid.records:
            entry = entry_of(record, layout)
            entry = entry if output is None else _with_output(entry, record, output, layout)
            yield _cell(record, ids_from), _cell(record, laid.layout.label), entry


def _records(source: str, reading: Reading) -> Iterator[LineRecord]:
    path = Path(source)
    if path.suffix.lower() in KINDS or path.exists():
        return records_of(path, reading.encoding, reading.wanted)[0]
    # Only now: most users never read from the Hub.
    from raison.data.hub import hub_records

    return hub_records(source, reading.split)


def _cell(record: LineRecord, column: Column | None) -> str:
    if column is None or record.broken:
        return ""
    value = _value(record, column)
    return "" if is_missing(value) else str(value).strip()


def _value(record: LineRecord, column: Column) -> object:
    if isinstance(record.cells, list):
        return record.cells[int(column)] if int(column) < len(record.cells) else None
    return record.cells.get(str(column))


def _with_output(entry: Entry, record: LineRecord, column: Column, layout: ColumnLayout) -> Entry:
    """The entry with the output written after its text; without an output, a line that cannot be used."""
    if not isinstance(entry, Row):
        return entry
    value = _value(record, column)
    if not isinstance(value, str) or not value:
        return BrokenLine(entry.number, f"no output in {layout.called(column)}")
    return replace(entry, output=value)
