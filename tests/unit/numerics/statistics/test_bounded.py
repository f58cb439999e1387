"""Tests of the mean of bounded values."""

import numpy as np
import pytest

from raison.numerics.statistics.bounded import Bounds, betting_p, share_p
from raison.numerics.statistics.successes import is_hit_or_miss

BOUNDS = [(0.5, Bounds(0.0, 1.0)), (0.9, Bounds(-1.0, 1.0)), (0.25, Bounds(0.0, 1.0))]


@pytest.mark.parametrize(("mean", "bounds"), BOUNDS)
@pytest.mark.parametrize("count", [1, 8, 29])
def test_the_bet_is_the_average_over_all_stakes(mean: float, bounds: Bounds, count: int) -> None:
    low, high = bounds.low, bounds.high
    values = np.random.default_rng(count).uniform(max(low, mean - 0.1), high, count)
    fortunes = []
    for gains, most in ((values - mean, 1 / (mean - low)), (mean - values, 1 / (high - mean))):
        stakes = (np.arange(100_000) + 0.5) / 100_000 * most
        fortune = np.ones_like(stakes)
        for gain in gains:
            fortune *= 1 + stakes * gain
        fortunes.append(fortune.mean())
    assert betting_p(values, mean, bounds) == pytest.approx(min(1.0, 2 / max(fortunes)), rel=1e-6)


@pytest.mark.parametrize(("mean", "bounds"), BOUNDS)
def test_it_is_seldom_small_where_the_mean_is_right(mean: float, bounds: Bounds) -> None:
    """For the distribution that spreads most, and for one within the bounds."""
    low, high = bounds.low, bounds.high
    rng, share = np.random.default_rng(0), (mean - low) / (high - low)
    extremes = [betting_p(np.where(rng.random(12) < share, high, low), mean, bounds) for _ in range(1000)]
    half = min(mean - low, high - mean)
    within = [betting_p(rng.uniform(mean - half, mean + half, 12), mean, bounds) for _ in range(1000)]
    for found in (extremes, within):
        assert np.mean(np.array(found) < 0.05) <= 0.05


def test_both_sides_are_alike() -> None:
    values = np.array([0.9, 1.0, 0.7, 0.95])
    assert betting_p(values, 0.4, Bounds(0.0, 1.0)) == pytest.approx(betting_p(1 - values, 0.6, Bounds(0.0, 1.0)))
    assert betting_p(np.full(8, 0.5), 0.5, Bounds(0.0, 1.0)) == 1.0


def test_hits_and_misses() -> None:
    assert is_hit_or_miss(np.array([0.0, 1.0]))
    assert not is_hit_or_miss(np.array([0.0, 0.5]))
    assert share_p(np.ones(8), 0.5) == pytest.approx(2 / 2**8)
