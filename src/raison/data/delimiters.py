"""Detects the delimiter of a text file from its first records, or refuses the file."""

import re
from itertools import islice
from pathlib import Path

from raison.core.errors import DataError
from raison.data.columns import Wanted, is_header
from raison.data.lines import SAMPLE, SINGLE, LineRecord, is_label_like, read_records, usual_width

DELIMITERS = (",", ";", "\t", "|")
NAMES = {",": "','", ";": "';'", "\t": "a tab", "|": "'|'", SINGLE: "none"}
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?")


def delimiter_of(path: Path, encoding: str, wanted: Wanted) -> str:
    """The delimiter of a .csv or .tsv file; SINGLE if each record is one text.

    A .tsv file with a tab anywhere in its first records is separated by tabs. Otherwise a header with known or
    requested names decides. Otherwise it is the one delimiter that gives the same number of cells, more than one, in
    all of the first records, including quoted ones. If no delimiter does, the file has one column, unless the text
    before or after a delimiter looks like a label. Raises DataError if a doubt remains, and OSError.
    """
    tsv = path.suffix.lower() == ".tsv"
    if tsv and any(len(record.cells) > 1 for record in islice(read_records(path, encoding), SAMPLE)):
        return "\t"
    heads = {mark: _head(path, encoding, mark) for mark in (*DELIMITERS, SINGLE)}
    if not any(not record.broken for head in heads.values() for record in head):
        # Nothing can be read: reading the rows reports the first record's own reason.
        return "\t" if tsv else ","
    try:
        named = [mark for mark in DELIMITERS if _has_header(heads[mark], wanted)]
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    if len(named) == 1:
        return named[0]
    steady = _without_decimals([mark for mark in named or DELIMITERS if _is_steady(mark, heads[mark])], heads)
    if len(steady) == 1:
        return steady[0]
    doubts = steady or named or [mark for mark in DELIMITERS if _cuts_labels(mark, heads[mark])]
    if doubts:
        raise DataError(_refusal(path, doubts, heads))
    return "\t" if tsv else SINGLE


def described(delimiter: str) -> str:
    """A delimiter in words."""
    return NAMES.get(delimiter, f"'{delimiter}'")


def _head(path: Path, encoding: str, mark: str) -> list[LineRecord]:
    return list(islice(read_records(path, encoding, ".csv", mark), SAMPLE))


def _cells(record: LineRecord) -> list[str]:
    return [str(cell) for cell in record.cells]


def _has_header(head: list[LineRecord], wanted: Wanted) -> bool:
    """Whether the first record's cells, more than one, are names of columns."""
    good = [record for record in head if not record.broken]
    return bool(good) and len(good[0].cells) > 1 and is_header([cell.strip() for cell in _cells(good[0])], wanted)


def _is_steady(mark: str, head: list[LineRecord]) -> bool:
    """Whether all records have the same number of cells, more than one, and not because each is a sentence."""
    widths = {0 if record.broken else len(record.cells) for record in head}
    prose = _like_prose(mark, [_cells(record) for record in head])
    return len(widths) == 1 and min(widths) > 1 and not (prose and not _cuts_labels(mark, head))


def _like_prose(mark: str, rows: list[list[str]]) -> bool:
    """Whether the delimiter is used as in a sentence: a comma or a semicolon with a space after it."""
    return mark in ",;" and all(cell.startswith(" ") for row in rows for cell in row[1:])


def _without_decimals(steady: list[str], heads: dict[str, list[LineRecord]]) -> list[str]:
    """The delimiters without a comma that occurs only inside numbers, if there is another one."""
    if len(steady) < 2 or "," not in steady:
        return steady
    pairs = [pair for record in heads[","] for pair in zip(_cells(record), _cells(record)[1:], strict=False)]
    decimal = all(left[-1:].isdigit() and right[:1].isdigit() for left, right in pairs)
    return [mark for mark in steady if mark != ","] if decimal else steady


def _cuts_labels(mark: str, head: list[LineRecord]) -> bool:
    """Whether the delimiter occurs in every record but the first, and cuts off something like a label at an end."""
    rows = [_cells(record) for record in (head[1:] or head) if not record.broken]
    if not rows or any(len(row) < 2 for row in rows):
        return False
    prose = _like_prose(mark, rows)
    return any(_like_labels([row[place].strip() for row in rows], prose) for place in (0, -1))


def _like_labels(cells: list[str], prose: bool) -> bool:
    if all(_NUMBER.fullmatch(cell) for cell in cells):
        return True
    # A sentence may also begin or end like this, unless the same few pieces recur.
    often = len(cells) >= 6 and len(set(cells)) <= len(cells) // 3
    return is_label_like(cells) and (often or not prose)


def _refusal(path: Path, doubts: list[str], heads: dict[str, list[LineRecord]]) -> str:
    mark = doubts[0]
    if len(doubts) > 1:
        why = f"{' and '.join(described(other) for other in doubts)} could both be the delimiter"
    else:
        width = usual_width([record for record in heads[mark] if not record.broken])
        odd = next(record for record in heads[mark] if record.broken or len(record.cells) != width)
        fault = f"cannot be read: {odd.broken}" if odd.broken else f"has {len(odd.cells)} cells where most have {width}"
        why = f"with {described(mark)}, line {odd.number} {fault}"
    shown = "tab" if mark == "\t" else mark
    return (
        f"{path} cannot be split into columns unambiguously: {why}. Name the delimiter (--delimiter '{shown}', "
        f"delimiter='{shown}'; 'none' if each line is one text)."
    )


def parsed(option: str) -> str:
    """A delimiter as the caller writes it: one character, "tab" or "none". Raises DataError for anything else."""
    mark = {"tab": "\t", "\\t": "\t", "none": SINGLE}.get(option, option)
    if len(mark) != 1 or mark in '\r\n"':
        raise DataError(f"the delimiter '{option}' is not one character, 'tab' or 'none'.")
    return mark
