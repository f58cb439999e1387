"""The mean of a table whose rows and columns are both samples: seeds, and groups of texts."""

import math

import numpy as np
from jaxtyping import Float

from raison.numerics.statistics.bootstrap import Interval, part_means
from raison.numerics.statistics.resampling import RESAMPLES
from raison.numerics.statistics.student import FEWEST, student_interval

SLICE = 4_000_000
"""Maximum count of numbers in memory at a time."""


def crossed_interval(table: Float[np.ndarray, "seeds groups"]) -> Interval:
    """Mean of all numbers that are not NaN, with a 95 % percentile bootstrap interval that resamples rows and columns.

    Every seed judges the same groups. Resampling single cells would treat them as independent and give too narrow an
    interval (Owen 2007, the pigeonhole bootstrap). An axis of length one is kept as it is. Of an axis of fewer than
    `FEWEST` entries, percentiles are far too narrow: the interval then reaches at least as far as Student's of that
    axis's means. One cell has no spread: its interval is NaN. No number at all gives NaN throughout.
    """
    known = table[~np.isnan(table)]
    if not known.size:
        return Interval(float("nan"), float("nan"), float("nan"))
    mean = float(known.mean())
    if known.size == 1:
        return Interval(mean, float("nan"), float("nan"))
    rng = np.random.default_rng(0)
    rows, columns = table.shape
    means_of = []
    step = max(1, SLICE // table.size)
    for start in range(0, RESAMPLES, step):
        count = min(RESAMPLES, start + step) - start
        down = rng.integers(rows, size=(count, rows))
        across = rng.integers(columns, size=(count, columns))
        drawn = table[down[:, :, None], across[:, None, :]]
        means_of.append(part_means(drawn.reshape(count, -1, 1))[:, 0])
    means = np.concatenate(means_of)
    low, high = np.quantile(means[~np.isnan(means)], [0.025, 0.975])
    ends = [(float(low), float(high)), *(_of_axis(table, axis, mean) for axis in (0, 1))]
    return Interval(mean, min(end[0] for end in ends), max(end[1] for end in ends))


def _of_axis(table: Float[np.ndarray, "seeds groups"], axis: int, mean: float) -> tuple[float, float]:
    """Student's interval of a short axis's means; the mean alone for an axis of one entry, or of many."""
    means = part_means(np.moveaxis(table, axis, 0)[:, :, None])[:, 0]
    means = means[~np.isnan(means)]
    if not 2 <= len(means) < FEWEST:
        return mean, mean
    return student_interval(mean, float(means.std(ddof=1)) / math.sqrt(len(means)), len(means) - 1.0)
