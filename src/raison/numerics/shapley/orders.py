"""Shapley values by definition: over all coalitions, or over orders in which the players arrive."""

from math import comb

import numpy as np
from jaxtyping import Bool, Float, Int

Orders = Int[np.ndarray, "orders units"]


def all_coalitions(units: int) -> Bool[np.ndarray, "masks units"]:
    """All 2^n coalitions; player i is in coalition number m where bit i of m is set."""
    return (np.arange(2**units)[:, None] >> np.arange(units) & 1).astype(bool)


def exact_shapley(values: Float[np.ndarray, " masks"]) -> Float[np.ndarray, " units"]:
    """phi_i = sum over S without i of |S|! (n - |S| - 1)! / n! (v(S with i) - v(S)), from the values of
    `all_coalitions`."""
    units = len(values).bit_length() - 1
    numbers = np.arange(len(values))
    sizes = np.bitwise_count(numbers)
    weights = np.array([1 / (units * comb(units - 1, size)) for size in range(units)])
    phi = np.zeros(units)
    for unit in range(units):
        without = numbers[numbers >> unit & 1 == 0]
        phi[unit] = weights[sizes[without]] @ (values[without | 1 << unit] - values[without])
    return phi


def draw_orders(units: int, budget: int, rng: np.random.Generator) -> Orders:
    """Random orders of the players, each followed by its reverse, whose coalitions cost at most `budget` evaluations.

    A coalition that several orders share is counted once. Orders are drawn until the next pair would not fit, or until
    there are `budget` pairs; a single order if no pair fits. No order at all if the budget is below n + 1.
    """
    seen: set[bytes] = set()
    orders: list[np.ndarray] = []
    while len(orders) < 2 * budget:
        order = rng.permutation(units)
        pair = np.stack([order, order[::-1]])
        new = _coalitions(pair) - seen
        if len(seen) + len(new) > budget:
            if not orders and units + 1 <= budget:
                orders.append(order)
            break
        orders.extend(pair)
        seen |= new
    return np.array(orders, dtype=np.int64).reshape(-1, units)


def arrivals(orders: Orders) -> Bool[np.ndarray, "masks units"]:
    """The n + 1 coalitions that each order forms, from the empty one to the full one."""
    count, units = orders.shape
    # argsort of an order gives the time at which each player arrives.
    ranks = orders.argsort(axis=1)
    keeps = ranks[:, None, :] < np.arange(units + 1)[None, :, None]
    return keeps.reshape(count * (units + 1), units)


def contributions(orders: Orders, values: Float[np.ndarray, " masks"]) -> Float[np.ndarray, "orders units"]:
    """What each player adds when it joins in each order, from the values of `arrivals`."""
    count, units = orders.shape
    added = np.diff(values.reshape(count, units + 1), axis=1)
    return np.take_along_axis(added, orders.argsort(axis=1), axis=1)


def standard_errors(added: Float[np.ndarray, "orders units"]) -> Float[np.ndarray, " units"] | None:
    """Standard errors of the mean over orders, from the spread of the means of pairs: an order and its reverse are not
    independent.

    None with fewer than two pairs.
    """
    pairs = added[: len(added) // 2 * 2].reshape(-1, 2, added.shape[1]).mean(axis=1)
    if len(pairs) < 2:
        return None
    return np.asarray(pairs.std(axis=0, ddof=1) / np.sqrt(len(pairs)))


def _coalitions(orders: Orders) -> set[bytes]:
    return {row.tobytes() for row in arrivals(orders)}
