"""Hits and misses: the number of successes among independent trials, its tail if each has its own probability, and the
share's interval."""

import math
from collections.abc import Sequence
from statistics import NormalDist

import numpy as np
from jaxtyping import Float


def is_hit_or_miss(values: Float[np.ndarray, " texts"]) -> bool:
    """Whether every value is 0 or 1."""
    return bool(((values == 0) | (values == 1)).all())


def at_least(count: int, probabilities: Sequence[float]) -> float:
    """The probability of at least `count` successes among these independent trials (the Poisson binomial's tail).

    Exact, by adding one trial after the other: P_i(k) = P_(i-1)(k) (1 - p_i) + P_(i-1)(k - 1) p_i. All k >= `count`
    share one entry, so the work is the number of trials times `count`.
    """
    if count <= 0:
        return 1.0
    reached = np.zeros(count + 1)
    reached[0] = 1.0
    for p in probabilities:
        moved = reached[:count] * p
        reached[:count] -= moved
        reached[1:] += moved
    return float(min(1.0, reached[count]))


def share_interval(count: int, total: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share; with z = Phi^-1(0.975) and p = count / total it is

    (p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n).
    """
    z, p = NormalDist().inv_cdf(0.975), count / total
    middle = p + z * z / (2 * total)
    half = z * math.sqrt(p * (1 - p) / total + (z / (2 * total)) ** 2)
    whole = 1 + z * z / total
    # Of no hits or of hits alone one end is the share itself, which rounding can miss.
    return max(0.0, min(p, (middle - half) / whole)), min(1.0, max(p, (middle + half) / whole))
