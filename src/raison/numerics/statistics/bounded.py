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


MOST_NODES = 1000
"""Beyond twice as many values the average over the stakes is no longer exact."""


@lru_cache(maxsize=32)
def _nodes(count: int) -> tuple[np.ndarray, np.ndarray]:
    """The nodes and weights of Gauss and Legendre, which an eigenvalue problem gives."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return nodes, weights


def _fortune(gains: Values, most: float) -> float:
    """The average over the stakes; half as many nodes of Gauss and Legendre as values integrate the polynomial exactly.

    Equal values are one factor to a power: time and memory do not grow with the number of texts that have them.
    """
    nodes, weights = _nodes(min(len(gains) // 2 + 1, MOST_NODES))
    stakes = most * (nodes + 1) / 2
    different, counts = np.unique(gains, return_counts=True)
    logarithms = np.log1p(stakes[:, None] * different) @ counts
    # A fortune beyond all numbers is infinite, and its p-value 0.
    with np.errstate(over="ignore"):
        return float((weights / 2) @ np.exp(logarithms))
