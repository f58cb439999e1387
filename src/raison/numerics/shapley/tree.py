"""Owen values on a balanced binary tree over the players in their order."""

import heapq
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool, Float

Keep = Bool[np.ndarray, " units"]


@dataclass(frozen=True, slots=True)
class Cluster:
    """Players first ... last - 1 in a context: the present players outside the cluster."""

    first: int
    last: int
    context: Keep
    without: float
    value: float
    """The values of the context without the cluster and with it."""
    weight: float
    """Weight of this context among all contexts of the cluster."""

    @property
    def credit(self) -> float:
        return self.weight * (self.value - self.without)

    @property
    def middle(self) -> int:
        return halved(self.first, self.last)

    def half(self, left: bool) -> Keep:
        """The context with one half of the cluster."""
        keep = self.context.copy()
        keep[slice(self.first, self.middle) if left else slice(self.middle, self.last)] = True
        return keep

    def split(self, left: float, right: float) -> list["Cluster"]:
        """Both halves, each in the context and in the context with the other half, given the halves' values."""
        weight = self.weight / 2
        whole, none, first, middle, last = self.value, self.without, self.first, self.middle, self.last
        return [
            Cluster(first, middle, self.context, none, left, weight),
            Cluster(middle, last, self.context, none, right, weight),
            Cluster(first, middle, self.half(left=False), right, whole, weight),
            Cluster(middle, last, self.half(left=True), left, whole, weight),
        ]


@dataclass(slots=True)
class OwenTree:
    """Clusters of one game, split by the size of their credit, the largest first.

    A cluster that is never split shares its credit equally among its players; clusters with equal credit are split in
    the order in which they were added.
    """

    units: int
    splits_left: int
    scores: Float[np.ndarray, " units"]
    pending: list[tuple[float, int, Cluster]] = field(default_factory=list)
    proposed: list[Cluster] = field(default_factory=list)
    pushed: int = 0

    @classmethod
    def planted(cls, units: int, splits: int, empty: float, full: float) -> "OwenTree":
        tree = cls(units, splits, np.zeros(units))
        tree._add(Cluster(0, units, np.zeros(units, dtype=bool), empty, full, 1.0))
        return tree

    @property
    def growing(self) -> bool:
        return bool(self.splits_left and self.pending)

    def ask(self, most: int) -> Bool[np.ndarray, "masks units"]:
        """The two halves of up to `most` clusters, which are then split by `tell`; no row if nothing is left."""
        count = min(most, self.splits_left, len(self.pending))
        self.proposed = [heapq.heappop(self.pending)[2] for _ in range(count)]
        self.splits_left -= count
        rows = [cluster.half(left) for cluster in self.proposed for left in (True, False)]
        return np.array(rows, dtype=bool).reshape(-1, self.units)

    def tell(self, values: Float[np.ndarray, " masks"]) -> None:
        for cluster, (left, right) in zip(self.proposed, values.reshape(-1, 2).tolist(), strict=True):
            for part in cluster.split(left, right):
                self._add(part)
        self.proposed = []

    def owen(self) -> Float[np.ndarray, " units"]:
        """The scores; clusters that are still pending share their credit equally."""
        scores = self.scores.copy()
        # Sums do not depend on the heap's layout.
        for _, _, cluster in sorted(self.pending, key=lambda one: one[1]):
            scores[cluster.first : cluster.last] += cluster.credit / (cluster.last - cluster.first)
        return scores

    def _add(self, cluster: Cluster) -> None:
        if cluster.last - cluster.first == 1:
            self.scores[cluster.first] += cluster.credit
            return
        heapq.heappush(self.pending, (-abs(cluster.credit), self.pushed, cluster))
        self.pushed += 1


def halved(first: int, last: int) -> int:
    """The place where a cluster is cut: the middle, with the left half the smaller one."""
    return (first + last) // 2


def tree_evaluations(units: int) -> int:
    """Coalitions that the exact Owen values take: the ends, and at depth d two for each of a cluster's 2^d contexts."""
    total, level, contexts = 2, [units], 1
    while level := [size for size in level if size > 1]:
        total += 2 * contexts * len(level)
        level = [part for size in level for part in (size // 2, size - size // 2)]
        contexts *= 2
    return total
