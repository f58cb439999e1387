"""Intervals of means."""

from collections.abc import Sequence

import numpy as np

RESAMPLES = 10_000


def mean_interval(values: Sequence[float], level: float = 0.95, seed: int = 0) -> tuple[float, float, float]:
    """Mean with its percentile bootstrap interval (Efron 1979), `RESAMPLES` resamples of the texts.

    One value has no spread to resample: its interval is NaN. No value gives NaN throughout.
    """
    if not values:
        return (float("nan"),) * 3
    sample = np.asarray(values, dtype=np.float64)
    mean = float(sample.mean())
    if len(sample) == 1:
        return mean, float("nan"), float("nan")
    rng = np.random.default_rng(seed)
    means = np.empty(RESAMPLES)
    # In slices: the table of draws for many texts would not fit.
    step = max(1, 4_000_000 // len(sample))
    for start in range(0, RESAMPLES, step):
        stop = min(RESAMPLES, start + step)
        means[start:stop] = sample[rng.integers(len(sample), size=(stop - start, len(sample)))].mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return mean, float(low), float(high)
