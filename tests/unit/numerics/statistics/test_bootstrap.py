"""Pooled values and their intervals against loops written from the definition."""

import math
import warnings

import numpy as np
import pytest
from scipy.stats import t, ttest_1samp

from raison.core.errors import UnknownNameError
from raison.numerics.statistics.bootstrap import POOLS, mean_interval, of_texts, part_means, pooled, pooled_interval
from raison.numerics.statistics.resampling import RESAMPLES
from raison.numerics.statistics.successes import share_interval


def literal(parts: np.ndarray, pool: str) -> tuple[float, float, float]:
    """One resample at a time, from the same draws."""

    def make(rows: np.ndarray) -> float:
        first, *rest = (float(column[~np.isnan(column)].mean()) for column in rows.T)
        if pool in ("mean", "curve"):
            return first
        if pool == "ratio":
            return first / rest[0] if rest[0] else math.nan
        return 2 * first * rest[0] / (first + rest[0]) if first + rest[0] else 0.0

    draws = np.random.default_rng(0).integers(len(parts), size=(RESAMPLES, len(parts)))
    values = [make(parts[draw]) for draw in draws]
    low, high = np.nanquantile(values, [0.025, 0.975])
    return make(parts), float(low), float(high)


@pytest.mark.parametrize("pool", POOLS)
def test_equals_a_loop_over_resamples(pool: str) -> None:
    parts = np.random.default_rng(1).uniform(0.1, 1, size=(9, 1 if pool == "mean" else 2))
    np.testing.assert_allclose(pooled_interval(parts, pool), literal(parts, pool), atol=1e-12)


@pytest.mark.parametrize("pool", [pool for pool in POOLS if pool != "f1"])
def test_predictions_of_a_text_are_resampled_together(pool: str) -> None:
    """The mean of all of them, and intervals from the texts: each part weighs as often as it is defined."""
    rng = np.random.default_rng(2)
    texts = np.repeat(np.arange(9), [1, 4, 2, 1, 3, 1, 1, 5, 2])
    parts = rng.uniform(0.1, 1, size=(len(texts), 1 if pool == "mean" else 2))
    if pool != "ratio":
        parts[3] = np.nan
    draws = np.random.default_rng(0).integers(9, size=(RESAMPLES, 9))
    # Of each text and part, the sum of what is defined and its number.
    known = [[column[~np.isnan(column)] for column in parts[texts == text].T] for text in range(9)]
    totals = np.array([[(column.sum(), len(column)) for column in columns] for columns in known])
    sums, counts = np.moveaxis(totals[draws].sum(axis=1), -1, 0)
    means = sums / counts
    values = means[:, 0] / means[:, 1] if pool == "ratio" else means[:, 0]
    found = pooled_interval(*of_texts(parts, pool, texts))
    np.testing.assert_allclose(found, (pooled(parts, pool), *np.nanquantile(values, [0.025, 0.975])), atol=1e-12)


def test_hits_of_a_text_are_one_hit() -> None:
    """Two labels of each of twenty texts, all found: no further evidence than twenty texts."""
    for counts in ([2] * 20, [1, 2, 3, 2] * 5):
        texts = np.repeat(np.arange(20), counts)
        found = pooled_interval(*of_texts(np.ones((len(texts), 1)), "mean", texts))
        assert found == pooled_interval(np.ones((20, 1)))
    assert found.low == pytest.approx(share_interval(20, 20)[0])


def test_of_f1_every_text_weighs_the_same() -> None:
    parts, pool = of_texts(np.array([[0.2, 0.4], [0.4, np.nan], [1.0, 0.5]]), "f1", np.array([7, 7, 3]))
    np.testing.assert_allclose(parts, [[1.0, 0.5], [0.3, 0.4]])
    assert pool == "f1"


@pytest.mark.parametrize("pool", POOLS)
def test_single_predictions_are_as_they_were(pool: str) -> None:
    parts = np.random.default_rng(1).uniform(size=(5, 2))
    found, of = of_texts(parts, pool, np.arange(5))
    assert found is parts
    assert of == pool


@pytest.mark.parametrize("count", [2, 5, 7])
def test_few_values_have_students_interval(count: int) -> None:
    values = np.random.default_rng(2).normal(size=count)
    found = ttest_1samp(values, 0.0).confidence_interval(0.95)
    assert mean_interval(values.tolist()) == pytest.approx((values.mean(), found.low, found.high))
    # Of a ratio, the error is the jackknife's.
    parts = np.random.default_rng(3).uniform(0.5, 1, size=(count, 2))
    ratios = [np.delete(parts[:, 0], text).sum() / np.delete(parts[:, 1], text).sum() for text in range(count)]
    error = math.sqrt((count - 1) / count * sum((ratio - np.mean(ratios)) ** 2 for ratio in ratios))
    value, low, high = pooled_interval(parts, "ratio")
    assert (high - value, value - low) == pytest.approx((t.ppf(0.975, count - 1) * error,) * 2)


@pytest.mark.parametrize("count", [5, 40])
def test_hits_and_misses_have_wilsons_interval(count: int) -> None:
    """Of successes alone a bootstrap's interval is a point, as if none could fail."""
    assert mean_interval([1.0] * count) == (1.0, *share_interval(count, count))
    mixed = [1.0, 0.0, 1.0, 1.0, 0.0] * (count // 5)
    assert mean_interval(mixed) == (0.6, *share_interval(3 * count // 5, count))


def test_a_missing_part_is_left_out_of_its_own_mean() -> None:
    parts = np.array([[1.0, 0.5], [0.0, np.nan], [0.5, 1.0]])
    np.testing.assert_allclose(part_means(parts[None]), [[0.5, 0.75]])
    assert pooled_interval(parts, "f1")[0] == pytest.approx(2 * 0.5 * 0.75 / 1.25)


def test_micro_counts_texts_by_their_size() -> None:
    assert pooled_interval(np.array([[2.0, 4.0], [0.0, 16.0]]), "ratio")[0] == pytest.approx(0.1)


def test_edges() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(math.isnan(number) for number in mean_interval([]))
        assert math.isnan(pooled_interval(np.zeros((3, 2)), "ratio")[0])
    value, low, high = mean_interval([0.25])
    assert value == 0.25
    assert math.isnan(low)
    assert math.isnan(high)
    with pytest.raises(UnknownNameError, match="Did you mean 'ratio'"):
        pooled_interval(np.zeros((3, 2)), "ratoi")
