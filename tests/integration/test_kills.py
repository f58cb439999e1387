"""A handful of what benchmarks/kills.py does at length: SIGKILL at random moments, and each row there once."""

import random
import sys
from pathlib import Path

import pytest

from tests.conftest import ALL

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")


@pytest.mark.parametrize(
    ("kind", "rows", "count"),
    [("Texts", 96, 3 if ALL else 1), pytest.param("Questions", 16, 2, marks=pytest.mark.thorough)],
)
def test_killed_at_random_moments_each_row_is_there_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, rows: int, count: int
) -> None:
    from benchmarks import kills

    monkeypatch.setattr(kills, "RESULTS", tmp_path)
    bench = {"Texts": kills.Texts, "Questions": kills.Questions}[kind](tmp_path, random.Random(1), rows)
    told = kills.local(bench, count)
    assert told.kills >= count
    assert told.whole >= 1
    assert told.wrong == 0
