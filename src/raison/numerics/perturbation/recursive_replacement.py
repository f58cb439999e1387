"""Importance by recursive replacement of random subsets, on any function of subsets (ReAGent)."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

_TINY = 1e-9
"""The largest change of probability; a change of 1 would be infinite in log-odds."""


@dataclass(frozen=True, slots=True)
class Shares:
    """The share of a text's units that is replaced in a step, and the share that is kept when the order is tested."""

    replaced: float
    kept: float

    def sizes(self, units: int) -> tuple[int, int]:
        """Both as numbers of units: at least one, and at most all."""
        return min(units, max(1, round(self.replaced * units))), min(units, max(1, round(self.kept * units)))


class Runs:
    """Several runs over one text, each from its own scores, with the draws of one generator.

    Scores are log-odds, whose softmax over the units is the importance. A run that has ended keeps its scores.
    """

    def __init__(self, units: int, count: int, shares: Shares, rng: np.random.Generator) -> None:
        self.scores: Float[np.ndarray, "runs units"] = rng.random((count, units))
        self.steps = np.zeros(count, dtype=int)
        self.ended = np.zeros(count, dtype=bool)
        self._rng = rng
        self._replaced, self._kept = shares.sizes(units)
        self._latest = np.ones((count, units), dtype=bool)

    @property
    def active(self) -> Bool[np.ndarray, " runs"]:
        """The runs that have not ended."""
        return ~self.ended

    def draw(self) -> Bool[np.ndarray, "active units"]:
        """The keep of the next step of each active run: everything but a random subset."""
        places = self._rng.random((int(self.active.sum()), self.scores.shape[1])).argsort(1)
        self._latest = places >= self._replaced
        return self._latest

    def update(self, changes: Float[np.ndarray, " active"]) -> None:
        """Replaced units gain log((1 + c) / (1 - c)), the others lose it; c in [-1, 1] is the decrease of the value."""
        bounded = np.clip(changes, -1 + _TINY, 1 - _TINY)
        gain = np.log1p(bounded) - np.log1p(-bounded)
        self.scores[self.active] += np.where(self._latest, -gain[:, None], gain[:, None])
        self.steps[self.active] += 1

    def best(self) -> Bool[np.ndarray, "active units"]:
        """A keep of the most important units of each active run; of equal ones the earlier."""
        order = (-self.scores[self.active]).argsort(1, kind="stable")
        kept = np.zeros(order.shape, dtype=bool)
        np.put_along_axis(kept, order[:, : self._kept], True, axis=1)
        return kept

    def end(self, enough: Bool[np.ndarray, " active"]) -> None:
        """End the active runs whose most important units suffice."""
        self.ended[self.active] = enough

    def importance(self) -> Float[np.ndarray, " units"]:
        """The softmax over units, averaged over the runs that ended, or over all if none did."""
        powers = np.exp(self.scores - self.scores.max(1, keepdims=True))
        shares = powers / powers.sum(1, keepdims=True)
        return shares[self.ended if self.ended.any() else slice(None)].mean(0)
