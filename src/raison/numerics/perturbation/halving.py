"""Parts of a row of units, halved where they matter most."""

import heapq
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float

UnitRange = tuple[int, int]
"""The first unit, and the one after the last."""


@dataclass(slots=True)
class Halving:
    """A text in parts; the part with the largest effect is halved first, and of equal ones the part that was found
    first."""

    units: int
    splits_left: int
    effects: dict[UnitRange, float] = field(default_factory=dict)
    """The effects of the current parts."""
    pending: list[tuple[float, int, UnitRange]] = field(default_factory=list)
    """The parts of more than one unit."""
    proposed: list[UnitRange] = field(default_factory=list)
    found: int = 0

    @classmethod
    def whole(cls, units: int, splits: int, effect: float) -> "Halving":
        """The text as one part."""
        halving = cls(units, splits)
        halving._add((0, units), effect)
        return halving

    @property
    def going_on(self) -> bool:
        return bool(self.splits_left and self.pending)

    def ask(self, most: int) -> Bool[np.ndarray, "parts units"]:
        """The halves of up to `most` parts, each as the units in it; `tell` then takes their effects."""
        count = min(most, self.splits_left, len(self.pending))
        self.splits_left -= count
        self.proposed = []
        for first, last in (heapq.heappop(self.pending)[2] for _ in range(count)):
            del self.effects[first, last]
            middle = (first + last) // 2
            self.proposed += [(first, middle), (middle, last)]
        inside = np.zeros((len(self.proposed), self.units), dtype=bool)
        for row, (first, last) in zip(inside, self.proposed, strict=True):
            row[first:last] = True
        return inside

    def tell(self, effects: Float[np.ndarray, " parts"]) -> None:
        for part, effect in zip(self.proposed, effects.tolist(), strict=True):
            self._add(part, effect)

    def scores(self) -> Float[np.ndarray, " units"]:
        """Each unit's share of its part's effect."""
        scores = np.zeros(self.units)
        for (first, last), effect in self.effects.items():
            scores[first:last] = effect / (last - first)
        return scores

    def _add(self, part: UnitRange, effect: float) -> None:
        self.effects[part] = effect
        if part[1] - part[0] > 1:
            heapq.heappush(self.pending, (-abs(effect), self.found, part))
            self.found += 1
