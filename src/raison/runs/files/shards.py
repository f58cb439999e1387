"""Rows of explanations as files: parquet, or a JSON object per line."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from raison.core.errors import DataError
from raison.core.settings.reading import json_value
from raison.jobs import disk
from raison.runs.files.flat_records import COLUMNS, UNITS, FlatRecord
from raison.text.surrogates import without_surrogates

if TYPE_CHECKING:
    import pyarrow

Format = Literal["parquet", "jsonl"]
FORMATS: tuple[Format, ...] = get_args(Format)
GROUP = 1024
"""Number of rows in memory while a shard is written, and in a row group of a parquet file."""


def require(form: Format) -> None:
    """Raise DataError if files of this format cannot be written here."""
    if form == "parquet":
        _parquet()


def write(path: Path, rows: Iterable[FlatRecord], form: Format) -> None:
    """Write a shard, whole, a group of rows at a time. Raises DataError."""
    groups = _groups(iter(rows))
    with disk.whole_file(path) as part:
        if form == "parquet":
            _write_parquet(part, groups)
        else:
            with part.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as file:
                for group in groups:
                    file.writelines(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in group)


def read(path: Path, columns: Sequence[str] | None = None) -> Iterator[FlatRecord]:
    """The rows of a shard, a group in memory at a time. Raises DataError."""
    try:
        if path.suffix == ".parquet":
            for batch in _parquet().ParquetFile(path).iter_batches(GROUP, columns=columns and list(columns)):
                yield from batch.to_pylist()
            return
        with path.open(encoding="utf-8") as file:
            for line in file:
                row = json_value(line)
                yield row if columns is None else {name: row[name] for name in columns}
    except (OSError, ValueError, OverflowError, KeyError) as error:
        raise DataError(f"cannot read {path}: {error}.") from None


def _groups(rows: Iterator[FlatRecord]) -> Iterator[list[FlatRecord]]:
    while group := list(islice(rows, GROUP)):
        yield group


def _write_parquet(path: Path, groups: Iterator[list[FlatRecord]]) -> None:
    import pyarrow

    schema = _schema()
    with _parquet().ParquetWriter(path, schema, compression="zstd") as writer:
        for group in groups:
            try:
                table = pyarrow.Table.from_pylist(group, schema=schema)
            except UnicodeEncodeError:
                # Parquet cannot store lone surrogates, as in a text that was cut within a character.
                table = pyarrow.Table.from_pylist([_whole(row) for row in group], schema=schema)
            writer.write_table(table)


def _whole(value: Any) -> Any:
    """A value whose strings have the replacement character for each half of a character."""
    if isinstance(value, dict):
        return {name: _whole(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_whole(item) for item in value]
    return without_surrogates(value) if isinstance(value, str) else value


def _schema() -> "pyarrow.Schema":
    """The columns' types, with what each holds as its metadata."""
    import pyarrow

    whole, text = pyarrow.int32(), pyarrow.string()
    unit = pyarrow.struct([("start", whole), ("end", whole), ("segment", whole), ("text", text), ("name", text)])
    types: dict[str, Callable[[], pyarrow.DataType]] = {
        "int64": pyarrow.int64,
        "double": pyarrow.float64,
        "bool": pyarrow.bool_,
        "string": pyarrow.string,
        "list<string>": lambda: pyarrow.list_(pyarrow.string()),
        "list<double>": lambda: pyarrow.list_(pyarrow.float64()),
        UNITS: lambda: pyarrow.list_(unit),
    }
    return pyarrow.schema(
        [pyarrow.field(one.name, types[one.type](), metadata={"about": one.about}) for one in COLUMNS]
    )


def _parquet() -> Any:
    """pyarrow's reader and writer, whose types mypy does not know."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise DataError(
            "parquet files need pyarrow: pip install 'raison[data]'; or write JSON lines (--format jsonl)."
        ) from None
    return parquet
