"""Shapley values by weighted least squares: which coalitions to evaluate, and how to solve for the values.

The Shapley values of a game v over n players are the phi that minimise

    sum_S mu(S) (v(S) - v(empty) - sum_{i in S} phi_i)^2    subject to    sum_i phi_i = v(full) - v(empty),

over all coalitions S of 1 to n - 1 players, with mu(S) = (n - 1) / (C(n, |S|) |S| (n - |S|)).
"""

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np
from jaxtyping import Bool, Float, Int

Rows = Bool[np.ndarray, "masks units"]


@dataclass(frozen=True, slots=True)
class RegressionPlan:
    """Coalitions to evaluate and their weights in the regression; `exact` where none is left out.

    The full and the empty coalition are not included. The second half are the complements of the first. `unseen` is,
    for each of these pairs, the share of the pairs of its level that were not drawn: 0 for a complete level.
    """

    keeps: Rows
    weights: Float[np.ndarray, " masks"]
    exact: bool
    unseen: Float[np.ndarray, " pairs"]


def plan_coalitions(units: int, budget: int, rng: np.random.Generator) -> RegressionPlan:
    """At most `budget` different coalitions, each with its complement.

    A level is the coalitions of k players together with their complements. From the outside in, a level is taken whole
    while the remaining budget, spread by the kernel's law, would cover it. The rest is sampled: the number of pairs per
    level is the expected one, rounded at random without bias, and the pairs within a level are drawn without
    replacement. Every sampled coalition then has the same weight, and the weighted sum of any function of the
    coalitions has the same expectation as over all of them.
    """
    mass = level_mass(units)
    blocks: list[np.ndarray] = []
    weights: list[np.ndarray] = []
    unseen: list[np.ndarray] = []
    level = 0
    while level < len(mass) and budget * mass[level] / mass[level:].sum() >= 2 * _pairs(units, level + 1):
        block = _whole_level(units, level + 1)
        budget -= 2 * len(block)
        blocks.append(block)
        weights.append(np.full(len(block), mass[level] / (2 * len(block))))
        unseen.append(np.zeros(len(block)))
        level += 1
    exact = level == len(mass)
    if not exact and budget >= 2:
        drawn = _sample_levels(units, level, _spread(mass[level:], budget // 2, rng), rng)
        blocks.append(drawn)
        weights.append(np.full(len(drawn), mass[level:].sum() / (2 * len(drawn))))
        unseen.append(_unseen(drawn))
    first = np.concatenate([np.zeros((0, units), dtype=bool), *blocks])
    half = np.concatenate([np.zeros(0), *weights])
    left_out = np.concatenate([np.zeros(0), *unseen])
    return RegressionPlan(np.concatenate([first, ~first]), np.concatenate([half, half]), exact, left_out)


def solve_shapley(
    keeps: Rows, weights: Float[np.ndarray, " masks"], gains: Float[np.ndarray, " masks"], total: float
) -> tuple[Float[np.ndarray, " units"], bool]:
    """The phi of the weighted least squares with sum phi = `total` exactly, from gains v(S) - v(empty).

    The second result is false if the coalitions do not determine phi; phi is then the solution of least norm.
    """
    units = keeps.shape[1]
    share = total / units
    if not len(keeps):
        return np.full(units, share), units == 1
    sizes = keeps.sum(axis=1)
    # phi = share + c with sum c = 0. Rows that sum to zero make the solution of least norm sum to zero by itself.
    rows = keeps - sizes[:, None] / units
    root = np.sqrt(weights)
    deviation, _, rank, _ = np.linalg.lstsq(root[:, None] * rows, root * (gains - sizes * share), rcond=1e-10)
    return share + deviation - deviation.mean(), bool(rank == units - 1)


def damped_shapley(
    keeps: Rows, weights: Float[np.ndarray, " masks"], gains: Float[np.ndarray, " masks"], total: float
) -> Float[np.ndarray, " units"]:
    """As `solve_shapley`, with a damping that vanishes as pairs of coalitions are added.

    It has the weight of one more pair on which all units have equal effects: over all coalitions the weighted rows,
    centred, have the second moment (I - 1 / n) / (2 H), with H the harmonic number of n - 1.
    """
    units = keeps.shape[1]
    share = total / units
    if not len(keeps):
        return np.full(units, share)
    sizes = keeps.sum(axis=1)
    rows = keeps - sizes[:, None] / units
    weighted = (weights / weights.sum())[:, None] * rows
    moment = 1 / (2 * (1 / np.arange(1, units)).sum())
    pairs = len(keeps) / 2
    deviation = np.linalg.solve(
        weighted.T @ rows + moment / pairs * np.eye(units), weighted.T @ (gains - sizes * share)
    )
    return np.asarray(share + deviation - deviation.mean())


def level_mass(units: int) -> Float[np.ndarray, " levels"]:
    """Share of the kernel's weight in each level: coalitions of k and of n - k players, k = 1 to n // 2."""
    sizes = np.arange(1, units // 2 + 1)
    mass = 2.0 / (sizes * (units - sizes))
    # In the middle level, a coalition and its complement have the same size.
    mass[2 * sizes == units] /= 2
    return mass / mass.sum()


def _pairs(units: int, size: int) -> int:
    """Number of pairs of a coalition of `size` players and its complement."""
    return comb(units, size) // 2 if 2 * size == units else comb(units, size)


def _unseen(drawn: Rows) -> Float[np.ndarray, " pairs"]:
    """For each drawn pair, given by one coalition, the share of its level's pairs that were not drawn."""
    units, sizes = drawn.shape[1], drawn.sum(axis=1)
    levels = np.minimum(sizes, units - sizes)
    counts = np.bincount(levels, minlength=units)
    # Whole numbers: for many units no float holds them.
    shares = [int(counts[size]) / _pairs(units, int(size)) for size in levels]
    return 1 - np.array(shares)


def _whole_level(units: int, size: int) -> Rows:
    """One coalition of each pair of a level."""
    middle = 2 * size == units
    # In the middle level, those with the first player: the complements are the others.
    chosen = (
        [(0, *rest) for rest in combinations(range(1, units), size - 1)]
        if middle
        else [*combinations(range(units), size)]
    )
    rows = np.zeros((len(chosen), units), dtype=bool)
    np.put_along_axis(rows, np.asarray(chosen), True, axis=1)
    return rows


def _spread(mass: Float[np.ndarray, " levels"], pairs: int, rng: np.random.Generator) -> Int[np.ndarray, " levels"]:
    """Whole numbers that sum to `pairs`: the expected ones, rounded up or down without bias (systematic sampling)."""
    edges = pairs * np.cumsum(mass) / mass.sum()
    edges[-1] = pairs
    return np.diff(np.floor(edges + rng.random()).astype(np.int64), prepend=0)


def _sample_levels(units: int, level: int, counts: Int[np.ndarray, " levels"], rng: np.random.Generator) -> Rows:
    """One coalition of each sampled pair: counts[j] pairs of coalitions of level + 1 + j players."""
    blocks = []
    for size, count in enumerate(counts.tolist(), start=level + 1):
        # Rounding of floats must not ask for more pairs than there are.
        blocks.append(_sample_pairs(units, size, min(count, _pairs(units, size)), rng))
    return np.concatenate(blocks)


def _sample_pairs(units: int, size: int, count: int, rng: np.random.Generator) -> Rows:
    """`count` different pairs of one level, one coalition of each."""
    sampled: dict[bytes, np.ndarray] = {}
    while len(sampled) < count:
        # A random permutation's ranks below `size` are a uniform coalition.
        rows = rng.random((count, units)).argsort(axis=1) < size
        if 2 * size == units:
            rows ^= ~rows[:, :1]
        for row in rows:
            if len(sampled) < count:
                sampled.setdefault(row.tobytes(), row)
    return np.array(list(sampled.values()), dtype=bool).reshape(-1, units)
