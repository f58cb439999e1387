"""Pairs of hits and misses: McNemar's test, and a bet where the second is moved."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from raison.numerics.statistics.paired import against, difference


@pytest.mark.parametrize(
    ("hits", "misses", "ties"), [(8, 0, 0), (17, 0, 3), (9, 2, 3), (3, 3, 6), (4, 0, 60), (20, 4, 400)]
)
def test_hits_and_misses_have_mcnemars_exact_test(hits: int, misses: int, ties: int) -> None:
    first = np.array([1.0] * hits + [0.0] * misses + [1.0] * ties)[:, None]
    second = np.array([0.0] * hits + [1.0] * misses + [1.0] * ties)[:, None]
    found = difference(first, second)
    discordant, fewer = hits + misses, min(hits, misses)
    exact = min(1.0, 2 * sum(math.comb(discordant, k) for k in range(fewer + 1)) / 2**discordant)
    assert found.second == found.p == pytest.approx(exact, abs=1e-12)


def test_other_values_are_no_hits_and_misses() -> None:
    """Even where the sample happens to have one difference only: another one could have had others."""
    first, second = np.array([[1.0]] * 17 + [[0.0]] * 3), np.zeros((20, 1))
    assert difference(first, second).second < 1e-3 < difference(0.5 * first, second).second
    assert difference(0.5 * first, second).second == pytest.approx(against(first, 0.0).second, abs=1e-12)


@pytest.mark.parametrize("count", [20, 64, 200])
def test_hits_and_misses_are_seldom_told_from_a_margin_that_they_keep_exactly(count: int) -> None:
    """Of each number of losses with its probability; those that hardly occur count as told from it."""
    decided = 0.0
    for lost, share in enumerate(binom.pmf(range(count + 1), count, 0.05)):
        kept = (np.arange(count) >= lost).astype(np.float64)[:, None]
        if share < 1e-4 or difference(kept, np.ones((count, 1)), shift=-0.05).confirmed < 0.05:
            decided += share
    assert decided <= 0.05
    clear = difference(np.ones((400, 1)), np.ones((400, 1)), shift=-0.05)
    assert clear.confirmed < 1e-3
    # One miss makes no claim easier.
    some = np.ones((count, 1))
    some[0] = 0
    whole = difference(np.ones((count, 1)), np.ones((count, 1)), shift=-0.05)
    assert difference(some, np.ones((count, 1)), shift=-0.05).second >= whole.second


def test_many_texts_take_no_more_than_few() -> None:
    """A tenth of a million hits and misses: a bet on each by itself would take a thousand times the memory there is."""
    rng = np.random.default_rng(0)
    lost = (rng.random((100_000, 1)) < 0.03).astype(np.float64)
    kept = difference(1.0 - lost, np.ones_like(lost), shift=-0.05)
    assert (kept.low > 0, kept.confirmed < 1e-3) == (True, True)
    more = (rng.random((100_000, 1)) < 0.07).astype(np.float64)
    gone = difference(1.0 - more, np.ones_like(more), shift=-0.05)
    assert (gone.high < 0, gone.confirmed < 1e-3) == (True, True)
