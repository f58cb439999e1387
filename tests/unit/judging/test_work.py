"""The jobs of a run cover every text once, in an order that makes unfinished runs samples of their texts."""

from typing import Any

from raison.judging.work import jobs_of
from raison.runs.headers import RowHead, RunHead, SettingsHead
from raison.runs.run import Run


def not_needed() -> Any:
    raise AssertionError("jobs are listed without a model")


def order(texts: int, together: int = 1) -> list[int]:
    """The first text of every chunk, in the order of the jobs."""
    rows, settings = (RowHead("r", "r", (0,)),), SettingsHead("word", "logit", 0, {})
    header = RunHead("1", "m", "d", texts, rows, (), settings, {}, {}, together=together)
    return [int(job.key.rpartition(" ")[2]) for job in jobs_of(not_needed, Run(header, None))]


def test_every_text_is_in_one_chunk_and_the_order_stays() -> None:
    assert sorted(order(100, 16)) == list(range(0, 100, 16))
    assert sorted(order(50)) == list(range(50))
    assert order(50) == order(50)


def test_the_first_half_is_of_both_halves_of_a_sorted_set() -> None:
    early = order(100)[:50]
    assert 15 <= sum(text < 50 for text in early) <= 35
    assert early != sorted(early)
