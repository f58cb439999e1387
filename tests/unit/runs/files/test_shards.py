"""Shards that cannot be read."""

from pathlib import Path

import pytest

from raison.core.errors import DataError
from raison.runs.files.shards import read


def test_a_value_that_python_cannot_hold_is_an_error_in_one_line(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    days = pyarrow.array([4_000_000], pyarrow.int32()).cast(pyarrow.date32())
    parquet.write_table(pyarrow.table({"text": days}), path)
    with pytest.raises(DataError, match="cannot read .*a.parquet: "):
        list(read(path))
