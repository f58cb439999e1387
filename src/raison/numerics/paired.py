"""Is one method better than another? The difference of two methods on the same texts, its interval and its p-value."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from raison.core.errors import InputError
from raison.numerics.bootstrap import RESAMPLES, Pool, pool_of

LEVEL = 0.95
EXACT_TEXTS = 12
"""Up to so many texts all 2^n swaps are tried."""
TOLERANCE = 1e-10
"""Differences that agree to this share of the pooled values tie: what is left is rounding."""
SLICE = 1_000_000
"""Random numbers held at a time: the table of all draws for many texts would not fit."""

SampleMeans = Float[np.ndarray, "2 samples parts"]
Gaps = Float[np.ndarray, " samples"]
Pairs = Float[np.ndarray, "2 texts parts"]


@dataclass(frozen=True, slots=True)
class Difference:
    """Pooled value of the first method minus that of the second on the same `count` texts.

    `low` and `high` are its 95 % interval; `p` is two-sided, for "the two methods could be exchanged on every text".
    """

    mean: float
    low: float
    high: float
    p: float
    count: int


def difference(
    first: Float[np.ndarray, "texts parts"],
    second: Float[np.ndarray, "texts parts"],
    pool: str = "mean",
    seed: int = 0,
) -> Difference:
    """Compare two methods text by text; row i of both is text i, in a metric's own unit.

    The interval is a percentile bootstrap (Efron 1979): texts are resampled with both of their rows. The p-value is a
    paired permutation test (Fisher 1935): under the null each text's two rows may be swapped. Up to 12 texts all
    swaps are tried; above, p = (hits + 1) / (draws + 1) over 10,000 random ones (Phipson and Smyth 2010), so that it
    is never 0. A swap whose pooled value is undefined counts as a hit, which can only raise p; a resample whose pooled
    value is undefined is left out of the interval.

    A text with a NaN in either row is left out. One text has no spread: its interval is NaN and its p is 1. No text,
    or a pooled value that is undefined on the texts themselves, gives NaN throughout. Raises UnknownNameError on an
    unknown pool and InputError on infinite scores.
    """
    make = pool_of(pool)
    pairs = np.stack([first, second])
    if np.isinf(pairs).any():
        raise InputError("scores to compare must be finite, or NaN for a text without a score; got an infinite one.")
    pairs = pairs[:, ~np.isnan(pairs).any(axis=(0, 2))].astype(np.float64)
    count = pairs.shape[1]
    observed = float(_gaps(pairs.mean(axis=1, keepdims=True), make)[0]) if count else math.nan
    if math.isnan(observed):
        return Difference(math.nan, math.nan, math.nan, math.nan, count)
    if count == 1:
        return Difference(observed, math.nan, math.nan, 1.0, count)
    rng = np.random.default_rng(seed)
    low, high = _interval(pairs, make, rng)
    return Difference(observed, low, high, _p_value(pairs, make, observed, rng), count)


def _gaps(means: SampleMeans, make: Pool) -> Gaps:
    """Pooled value of the first method minus that of the second, per sample; NaN where it is undefined."""
    return make(means[0]) - make(means[1])


def _interval(pairs: Pairs, make: Pool, rng: np.random.Generator) -> tuple[float, float]:
    """Percentiles of the gap over resampled texts."""
    _, count, parts = pairs.shape
    means = np.empty((2, RESAMPLES, parts))
    for start, stop in _slices(count):
        drawn = rng.integers(count, size=(stop - start, count), dtype=np.int32)
        # Column by column: a gathered table of all parts at once would be several times as large.
        for side in (0, 1):
            for part in range(parts):
                means[side, start:stop, part] = pairs[side, :, part][drawn].mean(axis=1)
    low, high = np.nanquantile(_gaps(means, make), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _p_value(pairs: Pairs, make: Pool, observed: float, rng: np.random.Generator) -> float:
    """Share of the swaps whose gap is at least as far from 0 as the observed one."""
    count = pairs.shape[1]
    # Rounding errors are a share of what is subtracted, not of the difference: magnitudes, so that nothing cancels.
    scale = float(np.nansum(make(np.abs(pairs).mean(axis=1))))
    least = abs(observed) - TOLERANCE * scale
    if count <= EXACT_TEXTS:
        swaps = (np.arange(2**count)[:, None] >> np.arange(count)) & 1 == 1
        return _hits(pairs, swaps, make, least) / len(swaps)
    hits = 0
    for start, stop in _slices(count):
        swaps = rng.integers(2, size=(stop - start, count), dtype=np.bool_)
        hits += _hits(pairs, swaps, make, least)
    return (hits + 1) / (RESAMPLES + 1)


def _hits(pairs: Pairs, swaps: Bool[np.ndarray, "samples texts"], make: Pool, least: float) -> int:
    """Number of swaps with a gap of at least `least` in magnitude, or an undefined one."""
    first, second = pairs / pairs.shape[1]
    swapped = swaps.astype(np.float64)
    kept = 1 - swapped
    # Sums of what each side now holds. Moving differences from one mean to the other would be a product less, but
    # would leave rounding errors where a part is exactly 0, and a pool may divide by it.
    means = np.stack([kept @ first + swapped @ second, swapped @ first + kept @ second])
    gaps = np.abs(_gaps(means, make))
    return int((np.isnan(gaps) | (gaps >= least)).sum())


def _slices(count: int) -> Iterator[tuple[int, int]]:
    """Ranges of samples that together are all `RESAMPLES`, each small enough to draw at once for `count` texts."""
    step = max(1, SLICE // count)
    for start in range(0, RESAMPLES, step):
        yield start, min(RESAMPLES, start + step)
