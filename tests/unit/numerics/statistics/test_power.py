"""Power: the published sample sizes, a simulation, and the edges."""

import math

import numpy as np
import pytest
from scipy.stats import nct, t, ttest_1samp

from raison.numerics.statistics.power import POWER, detectable, needed


@pytest.mark.parametrize(("effect", "texts"), [(0.2, 199), (0.3, 90), (0.5, 34), (0.8, 15), (1.2, 8)])
def test_sample_sizes_are_those_of_the_tables(effect: float, texts: int) -> None:
    """G*Power's, for a paired t test with 80 % power at 5 %, two-sided."""
    for count in (10, 100):
        assert needed(effect, 1 / math.sqrt(count), count) == texts
        assert needed(-effect, 1 / math.sqrt(count), count) == texts


@pytest.mark.parametrize("effect", [0.15, 0.31, 0.9, 1.7, 3.0, 12.0, 40.0])
def test_it_is_the_first_number_with_so_much_power(effect: float) -> None:
    """Tried one by one."""
    numbers = np.arange(2, 500)
    power = nct.sf(t.isf(0.025, numbers - 1), numbers - 1, effect * np.sqrt(numbers))
    assert needed(effect, 1 / math.sqrt(10), 10) == numbers[power >= POWER][0]


@pytest.mark.parametrize("count", [8, 16, 100, 1000])
def test_the_smallest_difference_takes_so_many_texts(count: int) -> None:
    least = detectable(0.3, count - 1)
    assert needed(least * 1.0001, 0.3, count) <= count
    assert needed(least * 0.98, 0.3, count) > count


def test_a_simulation_finds_it_as_often() -> None:
    error = 1 / math.sqrt(16)
    drawn = np.random.default_rng(0).normal(detectable(error, 15), 1, size=(4000, 16))
    found = (ttest_1samp(drawn, 0, axis=1).pvalue < 0.05).mean()
    assert abs(found - POWER) < 0.03


def test_what_cannot_be_known() -> None:
    assert math.isnan(detectable(math.nan, 9))
    assert math.isnan(detectable(0.1, 0))
    assert math.isnan(needed(0.1, math.nan, 10))
    assert needed(0.0, 0.1, 10) == math.inf
    assert needed(1e-6, 0.1, 10) == math.inf
    # Values without a spread do not show theirs.
    assert math.isnan(needed(0.1, 0.0, 10))
    assert math.isnan(detectable(0.0, 9))
