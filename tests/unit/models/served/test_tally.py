"""Requests of several processes are counted in one file."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from raison.core.errors import DataError
from raison.models.served.tally import RequestCount, Tally


def test_who_opens_the_same_name_counts_together(tmp_path: Path) -> None:
    one, other, apart = Tally(tmp_path, "a"), Tally(tmp_path, "a"), Tally(tmp_path, "b")
    for tally in (one, other, apart):
        with tally.held() as count:
            count.add(RequestCount(1, 10, 5))
    with one.held() as count:
        assert count == RequestCount(2, 20, 10)
    with apart.held() as count:
        assert count == RequestCount(1, 10, 5)


def test_what_fails_meanwhile_is_not_counted(tmp_path: Path) -> None:
    tally = Tally(tmp_path, "a")
    with pytest.raises(ZeroDivisionError), tally.held() as count:
        count.add(RequestCount(1 // 0))
    with tally.held() as count:
        assert count == RequestCount()


def _drop_the_table(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("DROP TABLE counts")


def _write_noise(path: Path) -> None:
    path.write_bytes(b"no database " * 1000)


@pytest.mark.parametrize("damage", [_drop_the_table, _write_noise])
def test_a_damaged_file_is_one_line(tmp_path: Path, damage: Callable[[Path], None]) -> None:
    tally = Tally(tmp_path, "a")
    damage(tmp_path / "tally.sqlite")
    with pytest.raises(DataError, match="requests cannot be counted in .*TMPDIR") as caught, tally.held():
        pass
    assert "\n" not in str(caught.value)
