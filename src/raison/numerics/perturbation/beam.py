"""Beam search over orderings, where partial orderings of the same set are merged (Zhou and Shah 2023)."""

from dataclasses import dataclass
from math import comb

import numpy as np
from jaxtyping import Bool, Float, Int

NOISE = 1e-5
"""Share of the largest value below which a difference is a rounding error of single precision."""


@dataclass(frozen=True, slots=True)
class Beam:
    """Partial orderings, the best first, one per set of units. The rest of an ordering depends only on the set, so only
    the best one of each set is kept.
    """

    sets: Bool[np.ndarray, "beams units"]
    scores: Float[np.ndarray, " beams"]
    orders: Int[np.ndarray, "beams depth"]

    @classmethod
    def start(cls, units: int) -> "Beam":
        """The empty ordering."""
        return cls(np.zeros((1, units), dtype=bool), np.zeros(1), np.zeros((1, 0), dtype=int))

    def extended(self) -> "Beam":
        """Every set with one more unit, reached from its best partial ordering; scores are still those before that
        unit."""
        parents, units = np.nonzero(~self.sets)
        sets = self.sets[parents]
        sets[np.arange(len(units)), units] = True
        # Partial orderings are sorted: the first one that leads to a set is the best.
        _, first = np.unique(np.packbits(sets, axis=1), axis=0, return_index=True)
        first.sort()
        orders = np.concatenate([self.orders[parents[first]], units[first, None]], axis=1)
        return Beam(sets[first], self.scores[parents[first]], orders)

    def best(self, gains: Float[np.ndarray, " beams"], size: int) -> "Beam":
        """The `size` best after each set's gain was added; among equal ones (up to NOISE), the first."""
        scores = self.scores + gains
        order = np.argsort(-_without_noise(scores), kind="stable")[:size]
        return Beam(self.sets[order], scores[order], self.orders[order])


def sets_at_most(units: int, size: int) -> list[int]:
    """Upper bounds on the number of sets of 1 ... n units that a search with a beam of `size` evaluates."""
    bounds: list[int] = []
    for depth in range(1, units + 1):
        beginnings = min(size, bounds[-1]) if bounds else 1
        bounds.append(min(comb(units, depth), beginnings * (units - depth + 1)))
    return bounds


def shifted_ranks(
    order: Int[np.ndarray, " units"], effects: Float[np.ndarray, " units"]
) -> Float[np.ndarray, " units"]:
    """n - 1/2 for the first of the order down to 1/2 for the last, minus the whole number that fits the signs best.

    The fit is the number of units whose sign is that of their effect; among equal fits, the smallest number is taken.
    """
    units = len(order)
    ranks = np.empty(units)
    ranks[order] = np.arange(units, 0, -1) - 0.5
    signs = np.sign(_without_noise(effects))
    fits = [int((np.sign(ranks - shift) == signs).sum()) for shift in range(units + 1)]
    return ranks - int(np.argmax(fits))


def _without_noise(values: Float[np.ndarray, " entries"]) -> Float[np.ndarray, " entries"]:
    step = NOISE * float(np.abs(values).max(initial=0.0))
    return np.round(values / step) if step > 0 else values
