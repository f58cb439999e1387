"""A handful of what benchmarks/kills.py does at length: SIGKILL at random moments, and each row there once."""

import random
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are forked")


def test_killed_at_random_moments_each_row_is_there_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks import kills

    monkeypatch.setattr(kills, "RESULTS", tmp_path)
    bench = kills.Bench(tmp_path, random.Random(1), 250)
    told = kills.local(bench, 3)
    assert told.kills >= 3
    assert told.whole >= 1
    assert told.wrong == 0
