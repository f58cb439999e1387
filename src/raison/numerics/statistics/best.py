"""Comparison with the best of many, where the best was found on the same texts."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from raison.numerics.statistics.bootstrap import pool_of
from raison.numerics.statistics.paired import contributions
from raison.numerics.statistics.resampling import draws, grouped

RESAMPLES = 2_000
"""Each needs the variance of every pair of columns."""
_STILL = 1e-7
"""A standard error below this share of the columns' spread is rounding."""

Ratios = Float[np.ndarray, " ratios"]
Columns = Float[np.ndarray, "texts tables"]


def of_any_pair(tables: Sequence[Float[np.ndarray, "texts parts"]], pool: str, ratios: Ratios, seed: int = 0) -> Ratios:
    """For each of `ratios`, differences in standard errors, the probability that any two of the tables, if all were
    equally good, differ as much.

    The best of many is ahead of some by chance. It could have been any of them, so what counts is the largest
    difference of any two: texts are resampled, and each pair's deviation is divided by its own standard error in that
    resample (the studentised bootstrap of the largest statistic, Westfall and Young 1993; of all pairs, Hsu 1996). It
    bounds the chance that anything is found among equal ones, whatever holds of the others. p = (hits + 1) / (draws +
    1). Texts on which a table has a NaN are left out. NaN for fewer than two tables or texts.
    """
    known = ~np.isnan(np.hstack(tables)).any(axis=1)
    if len(tables) < 2 or known.sum() < 2:
        return np.full(len(ratios), np.nan)
    make = pool_of(pool)
    shares = grouped(np.stack([contributions(table[known], make) for table in tables], axis=1), seed)
    largest = _largest(shares - shares.mean(axis=0), seed)
    hits: Ratios = (largest[:, None] >= np.abs(ratios)).sum(axis=0)
    found: Ratios = np.where(np.isnan(ratios), np.nan, (hits + 1) / (len(largest) + 1))
    return found


def _largest(deviations: Columns, seed: int) -> Float[np.ndarray, " samples"]:
    """The largest deviation of any two columns' difference in each resample, in its standard errors there.

    One column with all later ones at a time, in place: tables of all pairs would be gigabytes for 150 columns.
    """
    texts = len(deviations)
    weights = _resamples(texts, seed) / texts
    shifts = weights @ deviations
    largest = np.zeros(len(weights))
    for column in range(deviations.shape[1] - 1):
        squares = (deviations[:, column + 1 :] - deviations[:, column, None]) ** 2
        rounding = _STILL**2 * squares.mean(axis=0)
        gaps = shifts[:, column + 1 :] - shifts[:, column, None]
        gaps *= gaps
        errors = weights @ squares
        errors -= gaps
        errors /= texts - 1
        still = errors <= rounding
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = np.divide(gaps, errors, out=errors)
        ratios[still] = np.inf
        ratios[gaps <= rounding] = 0.0
        np.maximum(largest, ratios.max(axis=1), out=largest)
    return np.sqrt(largest)


def _resamples(texts: int, seed: int) -> Float[np.ndarray, "samples texts"]:
    """The first `RESAMPLES` resamples."""
    found: list[np.ndarray] = []
    for counts in draws(texts, seed).resamples():
        found.append(counts)
        if sum(map(len, found)) >= RESAMPLES:
            break
    return np.concatenate(found)[:RESAMPLES]
