"""The tail of the Poisson binomial, against every outcome counted, and against scipy where all chances are equal."""

from itertools import product
from math import prod

import pytest
from scipy.stats import binom

from raison.numerics.statistics.successes import at_least, share_interval

CHANCES = (0.1, 0.5, 0.25, 0.9, 0.0, 1.0)


@pytest.mark.parametrize("count", range(8))
def test_as_counted_outcome_by_outcome(count: int) -> None:
    outcomes = product((0, 1), repeat=len(CHANCES))
    expected = sum(
        prod(p if came else 1 - p for came, p in zip(outcome, CHANCES, strict=True))
        for outcome in outcomes
        if sum(outcome) >= count
    )
    assert at_least(count, CHANCES) == pytest.approx(expected, abs=1e-15)


def test_equal_chances_are_binomial_far_into_the_tail() -> None:
    for count in (0, 1, 3, 20, 50):
        assert at_least(count, [0.07] * 50) == pytest.approx(binom.sf(count - 1, 50, 0.07), rel=1e-10)


def test_without_a_chance_nothing_comes_true() -> None:
    assert at_least(0, []) == 1.0
    assert at_least(1, []) == 0.0


@pytest.mark.parametrize("total", range(1, 60))
def test_the_interval_of_a_share_has_the_share_in_it(total: int) -> None:
    for count in (0, total // 2, total):
        low, high = share_interval(count, total)
        assert 0 <= low <= count / total <= high <= 1
