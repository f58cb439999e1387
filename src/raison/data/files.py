"""Data sets in local files: tsv, csv, txt, jsonl, parquet."""

import difflib
import hashlib
import re
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any

from raison.core.errors import DataError
from raison.core.unit import Text
from raison.data.columns import Column, Layout, Wanted, layout_of
from raison.data.dataset import BrokenLine, Dataset, Label, Row
from raison.data.lines import SAMPLE, Record, read_records

KINDS = (".csv", ".jsonl", ".parquet", ".tsv", ".txt")
_INTEGER = re.compile(r"[+-]?\d{1,9}")


def load_file(
    path: str | Path,
    text: Column | None = None,
    pair: tuple[Column, Column] | None = None,
    label: Column | None = None,
    *,
    limit: int | None = None,
    skip_bad: bool = False,
    encoding: str = "utf-8",
) -> Dataset:
    """Read a data set from a file.

    .tsv is read without quoting (as GLUE's files are), .csv with standard quotes, .txt as text and label separated
    by a tab or the last ';' of a line (or as one text a line), .jsonl and .parquet by column. A first line with a
    well-known column name, or with a name asked for, is a header; otherwise columns are found by their content or
    named by number, counted from 0. `text="title+description"` joins columns. `limit` stops after so many rows.
    Labels that are all whole numbers become int.

    Raises DataError if the file or a column is missing, and at the first broken line unless `skip_bad` is set;
    then broken lines are collected in the data set's `broken`.
    """
    path = Path(path)
    _check_path(path)
    wanted = Wanted(text, pair, label)
    try:
        rows, broken = rows_from(read_records(path, encoding), str(path), wanted, limit, skip_bad)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except LookupError as error:
        raise DataError(f"cannot read {path}: {error}.") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}.") from None
    return Dataset("/".join(path.resolve().parts[-2:]), rows, broken, digest)


def _check_path(path: Path) -> None:
    if not path.is_file():
        siblings = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        close = difflib.get_close_matches(path.name, siblings, n=1)
        hint = f" Did you mean '{path.with_name(close[0])}'?" if close else ""
        raise DataError(f"{path} is not a file.{hint}")
    if path.suffix.lower() not in KINDS:
        raise DataError(f"cannot tell the format of {path} from its name; known endings: {', '.join(KINDS)}.")


def rows_from(
    records: Iterator[Record], source: str, wanted: Wanted, limit: int | None, skip_bad: bool
) -> tuple[tuple[Row, ...], tuple[BrokenLine, ...]]:
    """Records as rows. `source` names them in errors. Raises DataError as `load_file` does."""
    head = list(islice(records, SAMPLE))
    good = [record for record in head if not record.broken]
    if not good:
        raise DataError(f"{source} has no rows" + (f"; line {head[0].number}: {head[0].broken}." if head else "."))
    try:
        layout = layout_of(good, wanted, source.lower().endswith(".csv"))
    except DataError as error:
        raise DataError(f"{source}: {error}") from None
    rows: list[Row] = []
    broken: list[BrokenLine] = []
    for record in _data(chain(head, records), layout, good[0]):
        if limit is not None and len(rows) >= limit:
            break
        reason = record.broken or _fault(record, layout)
        if not reason:
            rows.append(_row(record, layout))
        elif skip_bad:
            broken.append(BrokenLine(record.number, reason))
        else:
            raise DataError(f"{source}, line {record.number}: {reason}. --skip-bad (skip_bad=True) goes on without it.")
    if not rows:
        raise DataError(f"{source} has no rows that can be used ({len(broken)} broken lines).")
    return _typed_labels(rows), tuple(broken)


def _data(records: Iterator[Record], layout: Layout, first: Record) -> Iterator[Record]:
    return (record for record in records if not (layout.header and record is first))


def _fault(record: Record, layout: Layout) -> str:
    cells = record.cells
    if layout.width is not None and len(cells) != layout.width:
        return f"{len(cells)} cells instead of {layout.width}"
    for column in chain(*layout.texts):
        value = _cell(cells, column)
        if not isinstance(value, str):
            return f"no text in column '{column}'"
    if not all(text.strip() for text in _texts(cells, layout)):
        return "the text is blank"
    if layout.label is None:
        return ""
    value = _cell(cells, layout.label)
    if value is None or isinstance(value, list | dict) or not str(value).strip():
        return f"no label in column '{layout.label}'"
    return ""


def _cell(cells: list[Any] | Mapping[str, Any], column: Column) -> Any:
    if isinstance(cells, Mapping):
        return cells.get(str(column))
    return cells[int(column)]


def _texts(cells: list[Any] | Mapping[str, Any], layout: Layout) -> tuple[str, ...]:
    return tuple(" ".join(_cell(cells, column) for column in group) for group in layout.texts)


def _row(record: Record, layout: Layout) -> Row:
    texts = _texts(record.cells, layout)
    text: Text = texts[0] if len(texts) == 1 else (texts[0], texts[1])
    label: Label = None
    if layout.label is not None:
        value = _cell(record.cells, layout.label)
        whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
        label = int(value) if whole else str(value).strip()
    return Row(text, label, record.number)


def _typed_labels(rows: list[Row]) -> tuple[Row, ...]:
    # One label that is no number makes them all names: "1" beside "one" is not the number 1.
    if all(isinstance(row.label, int) or (row.label is not None and _INTEGER.fullmatch(row.label)) for row in rows):
        return tuple(Row(row.text, int(row.label or 0), row.number) for row in rows)
    return tuple(Row(row.text, None if row.label is None else str(row.label), row.number) for row in rows)
