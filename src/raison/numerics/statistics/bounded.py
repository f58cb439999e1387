"""Tests of the mean of values whose range is known; no other assumption about their distribution."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from jaxtyping import Float
from scipy.stats import binomtest

Values = Float[np.ndarray, " texts"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the largest possible value."""

    low: float
    high: float


def share_p(values: Values, share: float) -> float:
    """Two-sided p-value of the exact binomial test (Clopper and Pearson 1934): hits and misses against a share."""
    return float(binomtest(int(values.sum()), len(values), share).pvalue)


def betting_p(values: Values, mean: float, bounds: Bounds) -> float:
    """Two-sided p-value for "the mean is `mean`" of independent values within `bounds` (Waudby-Smith and Ramdas 2024).

    A fortune of 1 is bet on the values, fair or unfavourable if the mean is at most `mean`: prod_i (1 + b (x_i - mean))
    with a stake b >= 0 that cannot lose more than everything, averaged over b uniform in [0, 1 / (mean - low)]. By
    Markov's inequality, the probability that it reaches 1 / p is at most p. The other side is bet on likewise, so p is
    2 / max(fortunes). `mean` lies between the bounds.
    """
    above = _fortune(values - mean, 1 / (mean - bounds.low))
    below = _fortune(mean - values, 1 / (bounds.high - mean))
    return float(min(1.0, 2 / max(above, below, 1.0)))


@lru_cache(maxsize=32)
def _nodes(count: int) -> tuple[np.ndarray, np.ndarray]:
    """The nodes and weights of Gauss and Legendre, which an eigenvalue problem gives."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return nodes, weights


def _fortune(gains: Values, most: float) -> float:
    """The average over the stakes; this many nodes of Gauss and Legendre integrate the polynomial exactly."""
    nodes, weights = _nodes(len(gains) // 2 + 1)
    stakes = most * (nodes + 1) / 2
    return float((weights / 2) @ np.prod(1 + stakes[:, None] * gains, axis=1))
