"""How many of several chances came true, where each has a probability of its own."""

from collections.abc import Sequence

import numpy as np


def at_least(count: int, probabilities: Sequence[float]) -> float:
    """The probability that at least so many of these independent chances come true (the Poisson binomial's tail).

    Exact, by adding one chance after the other: P_i(k) = P_(i-1)(k) (1 - p_i) + P_(i-1)(k - 1) p_i. Everything from
    `count` on is kept in one place, so that the work is the number of chances times `count`.
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
