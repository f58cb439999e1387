"""Curves over the number of units that are kept or removed, from none to all, and the area under them."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Float

from raison.numerics.measures.ranking import top_keeps

SHARES = tuple(tenth / 10 for tenth in range(11))
"""Shares at which curves of texts with different numbers of units are interpolated, so that they can be averaged."""


def curve_keeps(order: Sequence[int], keep_top: bool) -> Bool[np.ndarray, "points units"]:
    """One keep per point: at point k, the first k units of `order` are kept (keep_top) or removed."""
    return top_keeps(order, range(len(order) + 1), keep_top)


def area(values: Float[np.ndarray, " points"]) -> float:
    """Trapezoidal area below at least two values at equal steps from 0 to 1: a mean with half weight at both ends."""
    return float(np.trapezoid(values, dx=1 / (len(values) - 1)))


def at_shares(values: Float[np.ndarray, " points"]) -> tuple[float, ...]:
    """A curve of at least two values at equal steps from 0 to 1, read at SHARES, linearly between its points."""
    return tuple(np.interp(SHARES, np.linspace(0, 1, len(values)), values).tolist())
