"""Student's t: the mean of a few independent values, whose spread is as uncertain as the mean (Student 1908)."""

import math

FEWEST = 8
"""Below this number of values a percentile bootstrap covers far less than 95 % (benchmarks/false_findings.py)."""


def student_interval(mean: float, error: float, freedom: float) -> tuple[float, float]:
    """The 95 % interval of a mean with this standard error and degrees of freedom; NaN without any."""
    if freedom <= 0 or math.isnan(error):
        return math.nan, math.nan
    # Only now: importing scipy takes long, and most commands need none of it.
    from scipy.stats import t

    half = float(t.isf(0.025, freedom)) * error
    return mean - half, mean + half


def student_p(mean: float, error: float, freedom: float) -> float:
    """The two-sided p-value for "the mean is 0"; NaN without a degree of freedom. Without a spread, 1 or 0."""
    if freedom <= 0 or math.isnan(error):
        return math.nan
    if error == 0:
        return float(mean == 0)
    from scipy.stats import t

    return float(2 * t.sf(abs(mean) / error, freedom))
