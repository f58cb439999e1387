"""Files as records: one list of cells, one mapping, or one broken line at a time, whatever the columns mean."""

import codecs
import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from threading import Lock
from typing import Any, TextIO

from raison.core.errors import DataError
from raison.core.settings.reading import json_value

SAMPLE = 50
"""Records looked at before deciding on a file's layout."""

_NEVER_CLOSED = "unexpected end of data"
"""What the csv module says of a quote that is open at the end."""

_LONGEST = 10_000_000
"""Maximum number of characters of a csv file's cell. It bounds what a quote that is never closed can swallow."""
_LIMIT = Lock()
_BLOCK = 4096
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte order marks; that of UTF-32 begins with one of UTF-16."""

_UNDECODED = "raison.undecoded"
_LOW = "\udc7f"
_ESCAPED = re.compile("[\udc7f-\udcff]")
"""What stands for bytes that are not text: each by itself, those of which none is above 127 by _LOW."""

SINGLE = "\x1f"
"""The delimiter of a one-column csv file: a character that occurs in no text, so that commas are kept."""


@dataclass(frozen=True, slots=True)
class LineRecord:
    """The cells of one line (a list, or a mapping by column), or the reason why there are none.

    `number` is the line where it starts, counted from 1.
    """

    number: int
    cells: list[Any] | Mapping[str, Any]
    broken: str = ""


def read_records(path: Path, encoding: str, kind: str = "", delimiter: str = ",") -> Iterator[LineRecord]:
    """The records of a .tsv, .csv, .txt, .jsonl or .parquet file; `kind` is the format if the name has no ending.

    `delimiter` is that of a .csv file. Raises DataError or OSError if it cannot be opened.
    """
    readers: dict[str, Callable[[TextIO], Iterator[LineRecord]]] = {
        ".csv": partial(_csv, delimiter=delimiter),
        ".tsv": _tsv,
        ".txt": _txt,
    }
    kind = kind or path.suffix.lower()
    if kind == ".parquet":
        yield from _parquet(path)
        return
    _check_width(path, encoding)
    # Bytes that are not text become surrogates here and are found line by line, so that one bad line affects no others.
    name = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    with path.open(encoding=name, errors=_UNDECODED, newline="" if kind == ".csv" else "\n") as file:
        if kind == ".jsonl":
            yield from _jsonl(file, encoding)
            return
        for record in readers[kind](file):
            yield _decoded(record, encoding)


def whole_lines(path: Path, encoding: str) -> Iterator[LineRecord]:
    """Every line of a file, blank ones too, as a record of one cell. Raises DataError or OSError."""
    _check_width(path, encoding)
    with path.open(encoding=encoding, errors=_UNDECODED, newline="\n") as file:
        for number, line in enumerate(file, start=1):
            yield _decoded(LineRecord(number, [line.rstrip("\r\n")]), encoding)


def check_first_line(path: Path, encoding: str) -> None:
    """DataError if the first line of a file, its header if it has one, is not text. Raises OSError."""
    first = next((line for line in whole_lines(path, encoding) if line.broken or any(map(str.strip, line.cells))), None)
    if first is not None and first.broken:
        raise DataError(f"{path}: line {first.number}, which may name the columns, cannot be read: {first.broken}.")


def _is_wide(encoding: str) -> bool:
    """Whether its characters have two or four bytes."""
    return codecs.lookup(encoding).name.startswith(("utf-16", "utf-32"))


def _check_width(path: Path, encoding: str) -> None:
    """DataError for a file of characters of two or four bytes that is to be read byte by byte."""
    if _is_wide(encoding):
        return
    with path.open("rb") as file:
        start = file.read(_BLOCK)
    wide = next((name for mark, name in _MARKS.items() if start.startswith(mark)), None)
    # Latin letters in UTF-16: every other byte is zero.
    if wide is None and start.count(0) > len(start) / 4:
        wide = "utf-16-le" if start[1::2].count(0) > start[::2].count(0) else "utf-16-be"
    if wide is not None:
        raise DataError(
            f"{path} is not {encoding}: its bytes are {wide}. Give encoding='{wide}' (--encoding {wide}), "
            "or save it as UTF-8."
        )


def is_label_like(values: list[str]) -> bool:
    """Whether cells look like labels: short, and few different ones."""
    distinct = set(values)
    short = all(0 < len(value) <= 30 and len(value.split()) <= 3 for value in distinct)
    return short and len(distinct) <= max(2, len(values) // 2)


def _decoded(record: LineRecord, encoding: str) -> LineRecord:
    """The record of a file without escapes, broken if a cell of it is not text."""
    faults = (_fault(cell, encoding) for cell in record.cells if isinstance(cell, str))
    reason = next(filter(None, faults), "")
    return LineRecord(record.number, [], reason) if reason else record


def _fault(text: str, encoding: str) -> str:
    """Why a piece of a file is not text; empty if it is."""
    found = _ESCAPED.search(text)
    if found is None:
        return ""
    if _is_wide(encoding) or found[0] == _LOW:
        return f"it is not {encoding}: it has half a character, or bytes are missing"
    return (
        f"the byte 0x{ord(found[0]) - 0xDC00:02x} is not {encoding} (if the file is Latin-1, give encoding='latin-1' "
        "(--encoding latin-1), or save it as UTF-8)"
    )


def _escaped(error: UnicodeError) -> tuple[str, int]:
    """What takes the place of bytes that are not text: as "surrogateescape" has it, in wide encodings, too."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    high = [byte for byte in error.object[error.start : error.end] if byte >= 0x80]
    return "".join(chr(0xDC00 + byte) for byte in high) or _LOW, error.end


codecs.register_error(_UNDECODED, _escaped)


def _csv(file: Iterator[str], delimiter: str, number: int = 1) -> Iterator[LineRecord]:
    """The records of lines counted from `number`. Of one that is not valid, only the first line is broken, because a
    quote that is never closed reaches to the end of the file.
    """
    start = ""
    while True:
        lines: list[str] = []
        reader = csv.reader(_noted(start, file, lines), strict=True, delimiter=delimiter)
        start = ""
        try:
            cells = _next(reader)
        except csv.Error as error:
            yield LineRecord(number, [], _csv_fault(error, number, len(lines)))
            # In the last line, where the fault is, a cell of several lines may begin; none begins in those before it.
            if len(lines) > 1 and str(error) != _NEVER_CLOSED:
                start = lines.pop()
            for place, line in enumerate(lines[1:], start=number + 1):
                yield from _csv(iter([line]), delimiter, place)
        else:
            if cells is None:
                return
            if cells:
                yield LineRecord(number, cells)
        number += len(lines)


def _next(reader: Iterator[list[str]]) -> list[str] | None:
    """The next record, in which a cell may be as long as a book: the csv module's own limit is one of the process."""
    with _LIMIT:
        before = csv.field_size_limit(_LONGEST)
        try:
            return next(reader, None)
        finally:
            csv.field_size_limit(before)


def _noted(start: str, file: Iterator[str], lines: list[str]) -> Iterator[str]:
    """The line `start`, if there is one, and those of the file; `lines` gets the ones that were read."""
    for line in chain([start] if start else [], file):
        lines.append(line)
        yield line


def _csv_fault(error: csv.Error, number: int, lines: int) -> str:
    reason = f"not valid CSV ({error})"
    if lines == 1 and str(error) != _NEVER_CLOSED:
        return reason
    after = ", so that the lines after it were read one by one" if lines > 1 else ""
    return f"{reason}: a quote opens in line {number} and does not end as it should (close it, or double it){after}"


def _tsv(file: TextIO) -> Iterator[LineRecord]:
    for number, line in enumerate(file, start=1):
        if line.strip():
            yield LineRecord(number, line.rstrip("\r\n").split("\t"))


def _txt(file: TextIO) -> Iterator[LineRecord]:
    lines = ((number, line.rstrip("\r\n")) for number, line in enumerate(file, start=1) if line.strip())
    head = list(islice(lines, SAMPLE))
    delimiter = _delimiter([line for _, line in head])
    for source in (head, lines):
        for number, line in source:
            # The text itself may contain the delimiter; the label after it does not.
            yield LineRecord(number, line.rsplit(delimiter, 1) if delimiter else [line])


def _delimiter(lines: list[str]) -> str:
    for delimiter in ("\t", ";"):
        ends = [line.rpartition(delimiter)[2].strip() for line in lines if delimiter in line]
        if len(lines) > 1 and len(ends) == len(lines) and is_label_like(ends[1:]):
            return delimiter
    return ""


def _jsonl(file: TextIO, encoding: str) -> Iterator[LineRecord]:
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        # The line and not its values: an escape may be half a character.
        if reason := _fault(line, encoding):
            yield LineRecord(number, [], reason)
            continue
        try:
            value = json_value(line, _unrepeated)
        except json.JSONDecodeError as error:
            # At the line's end, JSON reports the place after the line break.
            yield LineRecord(number, [], f"not JSON ({error.msg}, column {min(error.pos, len(line.rstrip())) + 1})")
            continue
        except ValueError as error:
            yield LineRecord(number, [], f"not usable JSON: {error}")
            continue
        if isinstance(value, dict):
            yield LineRecord(number, value)
        else:
            yield LineRecord(number, [], "not a JSON object")


def _unrepeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object. Raises ValueError for a repeated key, because all values but the last would be lost."""
    values = dict(pairs)
    if len(values) < len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise ValueError(f"an object has the key {twice!r:.60} twice")
    return values


def _parquet(path: Path) -> Iterator[LineRecord]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise DataError(f"reading {path.name} needs pyarrow: pip install 'raison[data]'.") from None
    try:
        batches = parquet.ParquetFile(path).iter_batches()
        number = 0
        for batch in batches:
            yield from _of_batch(batch, number + 1)
            number += len(batch)
    except (OSError, pyarrow.ArrowException) as error:
        raise DataError(f"cannot read {path}: {error}.") from None


def _of_batch(batch: Any, number: int) -> Iterator[LineRecord]:
    """The rows of a batch, counted from `number`; one with a value that Python cannot hold is broken."""
    try:
        rows = batch.to_pylist()
    except (ValueError, OverflowError):
        for place in range(len(batch)):
            yield _of_columns(batch, place, number + place)
    else:
        yield from (LineRecord(number + place, row) for place, row in enumerate(rows))


def _of_columns(batch: Any, place: int, number: int) -> LineRecord:
    cells: dict[str, Any] = {}
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            cells[name] = column[place].as_py()
        except (ValueError, OverflowError) as error:
            return LineRecord(number, {}, f"column {name!r:.60} cannot be read ({error})")
    return LineRecord(number, cells)


def usual_width(records: list[LineRecord]) -> int:
    """The most frequent number of cells."""
    return Counter(len(record.cells) for record in records).most_common(1)[0][0]
