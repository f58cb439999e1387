"""The mean of a table whose rows and columns are both samples: seeds, and groups of texts."""

import numpy as np
from jaxtyping import Float

from raison.numerics.statistics.bootstrap import Interval, part_means
from raison.numerics.statistics.resampling import RESAMPLES

SLICE = 4_000_000
"""Maximum count of numbers in memory at a time."""


def crossed_interval(table: Float[np.ndarray, "seeds groups"]) -> Interval:
    """Mean of all numbers that are not NaN, with a 95 % percentile bootstrap interval that resamples rows and columns.

    Every seed judges the same groups. Resampling single cells would treat them as independent and give too narrow an
    interval (Owen 2007, the pigeonhole bootstrap). An axis of length one is kept as it is. One cell has no spread: its
    interval is NaN. No number at all gives NaN throughout.
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
    return Interval(mean, float(low), float(high))
