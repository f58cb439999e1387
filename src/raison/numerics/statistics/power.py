"""Power of a paired comparison: the smallest difference that n texts can find, and the n that a found difference
needs."""

import math
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import nct, t

SIGNIFICANCE = 0.05
"""Significance level of two-sided tests: of the power here, and of verdicts and tables."""
POWER = 0.8
"""The probability that a true difference is found."""
MOST = 10**6
"""Maximum number of texts that is reported as needed."""
_STILL = 1e-12
"""A smaller standard error is rounding: the values are alike."""


def detectable(error: float, freedom: float) -> float:
    """The smallest true difference that paired values find with 80 % power, by a two-sided t test at 5 %.

    `error` is the standard error of the mean difference, in the metric's unit, and `freedom` its degrees of freedom:
    of n values n - 1. The noncentral t distribution, as in Cohen 1988. NaN without a degree of freedom, for an unknown
    error, or for values without a spread, which do not show theirs.
    """
    if freedom <= 0 or math.isnan(error) or error < _STILL:
        return math.nan
    return error * _detectable_shift(freedom)


@lru_cache(1024)
def _detectable_shift(freedom: float) -> float:
    """In standard errors. All comparisons of a table have the same few degrees of freedom."""
    found: float = brentq(lambda shift: _power(shift, freedom) - POWER, 0, 2 * _critical_value(freedom))
    return found


@lru_cache(4096)
def needed(mean: float, error: float, count: int) -> float:
    """The number of paired values that would find a true difference of `mean` with 80 % power, if they varied as these
    do.

    Infinity above a million. NaN as in `detectable`.
    """
    if count < 2 or math.isnan(error) or math.isnan(mean):
        return math.nan
    if error < _STILL:
        return math.inf if mean == 0 else math.nan
    effect = abs(mean) / (error * math.sqrt(count))
    # Normal for large counts, because the noncentral t distribution's code gives NaN in its tails.
    normal = ndtri(1 - SIGNIFICANCE / 2) + ndtri(POWER)
    if effect * math.sqrt(MOST) < normal:
        return math.inf
    # A t test needs about two more than a normal one: most of the slow powers are not asked for.
    few = max(1, int((normal / effect) ** 2) - 1)
    while few > 1 and _power(effect * math.sqrt(few), few - 1) >= POWER:
        few //= 2
    many = few + 4
    while _power(effect * math.sqrt(many), many - 1) < POWER:
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if _power(effect * math.sqrt(middle), middle - 1) >= POWER else (middle, many)
    return float(many)


def _power(shift: float, freedom: float) -> float:
    """The power of a test of values whose true mean is `shift` standard errors from zero, to find it on the right
    side."""
    # Older releases of SciPy warn of a division by zero at no shift at all, where their result is right.
    with np.errstate(divide="ignore"):
        return float(nct.sf(_critical_value(freedom), freedom, shift))


@lru_cache(1024)
def _critical_value(freedom: float) -> float:
    """Of the two-sided t test."""
    return float(t.isf(SIGNIFICANCE / 2, freedom))
