"""Student's interval and test against scipy's."""

import math

import numpy as np
import pytest
from scipy.stats import sem, ttest_1samp

from raison.numerics.statistics.student import student_interval, student_p


@pytest.mark.parametrize("count", [2, 3, 8])
def test_is_the_usual_test(count: int) -> None:
    values = np.random.default_rng(count).normal(0.5, 1, count)
    expected = ttest_1samp(values, 0.0)
    known = (float(values.mean()), float(sem(values)), count - 1.0)
    assert student_p(*known) == pytest.approx(expected.pvalue)
    interval = expected.confidence_interval(0.95)
    assert student_interval(*known) == pytest.approx((interval.low, interval.high))


def test_one_value_has_no_spread_and_equal_ones_none_either() -> None:
    assert all(map(math.isnan, (*student_interval(1.0, 0.5, 0.0), student_p(1.0, math.nan, 1.0))))
    assert student_interval(1.0, 0.0, 2.0) == (1.0, 1.0)
    assert (student_p(1.0, 0.0, 2.0), student_p(0.0, 0.0, 2.0)) == (0.0, 1.0)
