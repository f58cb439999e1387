"""Intervals of means, and of values that are made from means."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from raison.core.errors import UnknownNameError
from raison.numerics.statistics.resampling import draws, grouped
from raison.numerics.statistics.student import FEWEST, student_interval
from raison.numerics.statistics.successes import is_hit_or_miss, share_interval

Parts = Float[np.ndarray, "texts parts"]
Pool = Callable[[Float[np.ndarray, "samples parts"]], Float[np.ndarray, " samples"]]


def _first(means: Float[np.ndarray, "samples parts"]) -> Float[np.ndarray, " samples"]:
    return means[:, 0]


def _ratio(means: Float[np.ndarray, "samples parts"]) -> Float[np.ndarray, " samples"]:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(means[:, 1] == 0, np.nan, means[:, 0] / means[:, 1])


def _f1(means: Float[np.ndarray, "samples parts"]) -> Float[np.ndarray, " samples"]:
    total = means.sum(axis=1)
    # NaN, unlike zero, is not above it either.
    return np.divide(2 * means[:, 0] * means[:, 1], total, out=np.where(total == 0, 0.0, np.nan), where=total > 0)


POOLS: dict[str, Pool] = {"mean": _first, "ratio": _ratio, "f1": _f1, "curve": _first}
"""How one value is made from the means of a metric's parts over texts.

mean   the only part
ratio  the first over the second: micro averages, whose texts count by their size; NaN where the second is zero
f1     the harmonic mean of the first two: F1 of a mean precision and a mean recall; 0 where both are zero, NaN where
       one is undefined
curve  the first, an area; after it the values of the curve at SHARES (numerics/measures/curves.py)
"""


def pool_of(name: str) -> Pool:
    """The pool of a name."""
    if name not in POOLS:
        raise UnknownNameError("pool", name, POOLS)
    return POOLS[name]


def part_means(parts: Float[np.ndarray, "samples texts parts"]) -> Float[np.ndarray, "samples parts"]:
    """The mean of each part over the texts where it is defined; NaN if it is defined nowhere."""
    missing = np.isnan(parts)
    if not missing.any():
        return parts.mean(axis=1)
    counts = (~missing).sum(axis=1)
    sums = np.where(missing, 0.0, parts).sum(axis=1)
    return np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)


def pooled(parts: Parts, pool: str = "mean") -> float:
    """The pooled value of some texts; NaN if there is none. A part that is NaN on a text is left out of its mean."""
    return float(pool_of(pool)(part_means(parts[None]))[0]) if len(parts) else float("nan")


def of_texts(
    parts: Float[np.ndarray, "rows parts"], pool: str, texts: Int[np.ndarray, " rows"]
) -> tuple[Float[np.ndarray, "texts pooled"], str]:
    """One row for each text where several rows are predictions of the same one, which are not independent, and their
    pool. `texts` has the number of each row's text.

    The pooled value stays as it is: a text weighs as many rows as it has (of a ratio, if its two parts are undefined
    together). Only F1, whose means are then over texts, may move.
    """
    numbers, place = np.unique(texts, return_inverse=True)
    if len(numbers) == len(texts):
        return parts, pool
    known = ~np.isnan(parts)
    sums, counts = np.zeros((2, len(numbers), parts.shape[1]))
    np.add.at(sums, place, np.where(known, parts, 0.0))
    np.add.at(counts, place, known)
    with np.errstate(invalid="ignore"):
        means = sums / counts
    if pool == "f1":
        return means, pool
    if pool == "ratio":
        return np.where(counts == 0, np.nan, sums), pool
    # Means of texts that weigh the same stay hits and misses if all their rows are alike.
    if len(set(counts[:, 0].tolist()) - {0.0}) < 2 or np.nanmax(means[:, 0]) == np.nanmin(means[:, 0]):
        return means[:, :1], "mean"
    return np.where(counts[:, :1] == 0, np.nan, np.stack([sums[:, 0], counts[:, 0]], axis=1)), "ratio"


class Interval(NamedTuple):
    """A value with the ends of its interval."""

    value: float
    low: float
    high: float


def mean_interval(values: Sequence[float]) -> Interval:
    """Mean with its percentile bootstrap interval; see `pooled_interval`."""
    return pooled_interval(np.asarray(values, dtype=np.float64).reshape(-1, 1))


def pooled_interval(parts: Parts, pool: str = "mean") -> Interval:
    """A pooled value with its 95 % percentile bootstrap interval (Efron 1979), `RESAMPLES` resamples of the texts.

    Above `LARGEST` texts, groups of texts are resampled in their place (numerics/statistics/resampling.py). Of hits and
    misses the interval is Wilson's, if there is a hit: zeros alone may be other values; of fewer than `FEWEST` other
    values it is Student's, with the jackknife's standard error (Tukey 1958; of a mean it is the usual one). A part that
    is NaN on a text is left out of that part's mean. One text has no spread: its interval is NaN. No text gives NaN
    throughout.
    """
    make = pool_of(pool)
    if not len(parts):
        return Interval(float("nan"), float("nan"), float("nan"))
    value = pooled(parts, pool)
    if len(parts) == 1:
        return Interval(value, float("nan"), float("nan"))
    if make is _first and value > 0 and is_hit_or_miss(parts[:, 0]):
        return Interval(value, *share_interval(int(parts[:, 0].sum()), len(parts)))
    if len(parts) < FEWEST:
        return Interval(value, *student_interval(value, jackknife_error(parts, pool), len(parts) - 1.0))
    resampled = make(_resampled_means(parts))
    # Resamples in which the pooled value is undefined say nothing about it.
    resampled = resampled[~np.isnan(resampled)]
    if not len(resampled):
        return Interval(value, float("nan"), float("nan"))
    low, high = np.quantile(resampled, [0.025, 0.975])
    return Interval(value, float(low), float(high))


def jackknife_error(parts: Parts, pool: str) -> float:
    """The standard error of a pooled value, from the values without each text; NaN if one of these is undefined."""
    without = np.array([pooled(np.delete(parts, text, axis=0), pool) for text in range(len(parts))])
    return float(np.sqrt((len(parts) - 1) * without.var()))


def _resampled_means(parts: Parts) -> Float[np.ndarray, "samples parts"]:
    """`part_means` of each resample."""
    missing = np.isnan(parts)
    # Sums and counts side by side: one product of few columns is twice as fast as two.
    table = grouped(np.hstack([np.where(missing, 0.0, parts), ~missing]), 0)
    totals = np.concatenate([weights @ table for weights in draws(len(table), 0).resamples()])
    sums, counts = np.hsplit(totals, 2)
    return np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
