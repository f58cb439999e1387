"""Data sets in local files: tsv, csv, txt, jsonl, parquet."""

import difflib
from collections.abc import Iterator
from pathlib import Path

from raison.core.errors import DataError
from raison.data.columns import Column, Wanted
from raison.data.dataset import Dataset
from raison.data.delimiters import delimiter_of, described, parsed
from raison.data.lines import SINGLE, LineRecord, check_first_line, read_records
from raison.data.rows import rows_from
from raison.jobs.file_digest import sha256_of

KINDS = (".csv", ".jsonl", ".parquet", ".tsv", ".txt")


def load_file(
    path: str | Path,
    text: Column | None = None,
    pair: tuple[Column, Column] | None = None,
    label: Column | None = None,
    *,
    rationale: Column | None = None,
    contrast: Column | None = None,
    delimiter: str | None = None,
    limit: int | None = None,
    skip_bad: bool = False,
    encoding: str = "utf-8",
) -> Dataset:
    """Read a data set from a file.

    .tsv is read without quoting (as GLUE's files are), .csv with standard quotes, .txt as text and label separated by a
    tab or the last ';' of a line (or as one text a line), .jsonl and .parquet by column. The delimiter of a .csv (or of
    a .tsv without tabs) is detected from its first records, or given as `delimiter`: one character, "tab", or "none" if
    each record is one text. A first line with a well-known or requested column name is a header. Otherwise columns are
    found by their content, or named by number, counted from 0. `text="title+description"` joins columns. `limit` is the
    maximum number of rows. Labels that are all whole numbers become int. `rationale` names a column of .jsonl or
    .parquet with a list of [start, end] or [start, end, segment] (one annotator), or a list of such lists; lists in a
    column called rationale or rationales are found. `contrast` names the column of what each text's explanation is
    contrasted with.

    Raises DataError if the file or a column is missing, if the first line of a .csv or .tsv cannot be decoded, if its
    columns cannot be identified for certain, and at the first broken line unless `skip_bad` is set; then broken lines
    are collected in the data set's `broken`.
    """
    path = Path(path)
    wanted = Wanted(text, pair, label, rationale, delimiter, contrast)
    try:
        records, separated = records_of(path, encoding, wanted)
        read = rows_from(records, str(path), wanted, limit, skip_bad)
        digest = sha256_of([path])
    except LookupError as error:
        raise DataError(f"cannot read {path}: {error}.") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror or error}.") from None
    name = "/".join(path.resolve().parts[-2:])
    return Dataset(name, read.rows, read.broken, digest, taken=read.taken + separated, numbers=read.numbers)


def records_of(path: Path, encoding: str, wanted: Wanted) -> tuple[Iterator[LineRecord], str]:
    """The file's records, one at a time, and what separates their columns, in words. Raises DataError and OSError."""
    _check_path(path)
    kind = path.suffix.lower()
    if kind not in (".csv", ".tsv"):
        if wanted.delimiter is not None:
            raise DataError(f"delimiter is for .csv and .tsv files, and {path} is neither: leave it out.")
        return read_records(path, encoding), ""
    check_first_line(path, encoding)
    delimiter = delimiter_of(path, encoding, wanted) if wanted.delimiter is None else parsed(wanted.delimiter)
    separated = "" if delimiter == SINGLE else f"; columns separated by {described(delimiter)}"
    # GLUE's .tsv files are written without quoting.
    plain = kind == ".tsv" and delimiter == "\t"
    return (read_records(path, encoding) if plain else read_records(path, encoding, ".csv", delimiter)), separated


def _check_path(path: Path) -> None:
    if not path.is_file():
        if path.is_dir():
            raise DataError(f"{path} is a folder: name a file in it, or a pattern of files in quotes.")
        siblings = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
        close = difflib.get_close_matches(path.name, siblings, n=1)
        hint = f" Did you mean '{path.with_name(close[0])}'?" if close else ""
        raise DataError(f"{path} is not a file.{hint}")
    if path.suffix.lower() not in KINDS:
        raise DataError(f"cannot infer the format of {path} from its name; known endings: {', '.join(KINDS)}.")
