"""Comparison with the best of many, against a literal loop and on methods that are all equal."""

import numpy as np
import pytest

from raison.numerics.statistics.best import RESAMPLES, of_any_pair
from raison.numerics.statistics.resampling import RESAMPLES as DRAWN


def literal(columns: np.ndarray, ratio: float) -> float:
    """One resample at a time, from the same draws: the largest studentised deviation of any two columns."""
    texts, methods = columns.shape
    draws = np.random.default_rng(0).integers(texts, size=(DRAWN, texts), dtype=np.int32)[:RESAMPLES]
    hits = 0
    for draw in draws:
        largest = 0.0
        for i in range(methods):
            for j in range(i):
                gaps = columns[:, i] - columns[:, j]
                error = gaps[draw].std(ddof=1) / np.sqrt(texts)
                largest = max(largest, abs(gaps[draw].mean() - gaps.mean()) / error)
        hits += largest >= ratio
    return (hits + 1) / (len(draws) + 1)


def test_is_the_loop_over_resamples_and_pairs() -> None:
    columns = np.random.default_rng(1).normal(size=(12, 3))
    ratios = np.array([0.5, 2.5, -2.5, np.nan])
    found = of_any_pair([column[:, None] for column in columns.T], "mean", ratios)
    assert found[:2] == pytest.approx([literal(columns, 0.5), literal(columns, 2.5)])
    assert found[2] == found[1]
    assert np.isnan(found[3])


def test_the_more_methods_the_larger_a_difference_is_by_chance() -> None:
    rng = np.random.default_rng(2)
    columns = [rng.normal(size=(40, 1)) for _ in range(15)]
    few, many = (of_any_pair(columns[:count], "mean", np.array([2.5]))[0] for count in (2, 15))
    assert few < 0.05 < many


def test_texts_without_a_value_are_left_out_and_too_few_tell_nothing() -> None:
    rng = np.random.default_rng(3)
    one, other = rng.normal(size=(20, 1)), rng.normal(size=(20, 1))
    holed = np.vstack([one, [[np.nan]]])
    ratios = np.array([2.0])
    assert of_any_pair([holed, np.vstack([other, [[1.0]]])], "mean", ratios) == of_any_pair(
        [one, other], "mean", ratios
    )
    assert np.isnan(of_any_pair([one], "mean", ratios)).all()
    assert np.isnan(of_any_pair([one[:1], other[:1]], "mean", ratios)).all()


def test_columns_that_are_all_alike_differ_by_no_chance() -> None:
    same = np.linspace(0, 1, 10)[:, None]
    assert of_any_pair([same, same], "mean", np.array([1.0]))[0] == pytest.approx(1 / (RESAMPLES + 1))
