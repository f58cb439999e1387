"""Draws over many texts: groups of texts stand for texts, at a cost that no longer grows."""

import math

import numpy as np
import pytest

from raison.numerics.statistics.bootstrap import pooled_interval
from raison.numerics.statistics.paired import difference
from raison.numerics.statistics.resampling import LARGEST, RESAMPLES, draws, grouped

MANY = (LARGEST + 1, 2 * LARGEST, 7 * LARGEST + 5)


def test_up_to_the_largest_table_texts_are_drawn_one_by_one() -> None:
    values = np.arange(2.0 * LARGEST).reshape(LARGEST, 2)
    assert grouped(values, 0) is values


@pytest.mark.parametrize("texts", MANY)
def test_groups_hold_every_text_once_and_are_of_equal_size(texts: int) -> None:
    values = np.column_stack([np.arange(texts, dtype=np.float64), np.ones(texts)])
    sums = grouped(values, 0)
    assert LARGEST // 2 <= len(sums) <= LARGEST
    assert sums.sum(axis=0).tolist() == values.sum(axis=0).tolist()
    assert sums[:, 1].max() - sums[:, 1].min() <= 1
    # Put together at random: neighbours in a sorted file are alike.
    assert np.corrcoef(np.arange(len(sums)), sums[:, 0])[0, 1] < 0.1


@pytest.mark.parametrize("texts", MANY)
def test_the_interval_of_many_texts_is_that_of_the_normal_distribution(texts: int) -> None:
    values = np.random.default_rng(3).gamma(2.0, size=(texts, 1))
    values[::10] = np.nan
    known = values[~np.isnan(values)]
    mean, low, high = pooled_interval(values)
    half = 1.96 * known.std() / math.sqrt(len(known))
    assert mean == pytest.approx(known.mean())
    assert (high - mean, mean - low) == pytest.approx((half, half), rel=0.1)


@pytest.mark.parametrize("pool", ["mean", "ratio"])
def test_two_methods_on_many_texts(pool: str) -> None:
    rng = np.random.default_rng(5)
    one = rng.gamma(2.0, size=(MANY[-1], 2))
    other = one + rng.normal(0, 0.5, size=one.shape)
    alike, apart = difference(one, other, pool), difference(one + np.array([0.05, 0.0]), other, pool)
    assert alike.low < 0 < alike.high
    assert alike.p > 0.05
    assert apart.low > 0
    assert apart.p == pytest.approx(1 / (RESAMPLES + 1))
    if pool == "mean":
        half = 1.96 * (one - other)[:, 0].std() / math.sqrt(len(one))
        assert (alike.high - alike.low) / 2 == pytest.approx(half, rel=0.1)


def test_the_draws_of_a_size_are_kept_and_small() -> None:
    kept = draws(LARGEST, 0)
    assert draws(LARGEST, 0) is kept
    assert sum(part.nbytes for part in (*kept.counts, *kept.swaps)) == 2 * RESAMPLES * LARGEST
    assert sum(map(len, kept.counts)) == sum(map(len, kept.swaps)) == RESAMPLES
    assert {int(row.sum()) for part in kept.counts for row in part[:3].astype(int)} == {LARGEST}
