"""Quality against cost: which methods no other method beats."""

import math
from collections.abc import Sequence

from raison.core.errors import InputError


def front(costs: Sequence[float], values: Sequence[float], higher_is_better: bool = True) -> tuple[int, ...]:
    """Indices of the points that no other point beats, by rising cost; lower cost is better.

    A point beats another if it is at least as good in both and better in one. Equal points do not beat each other:
    all of them stay, in the order given. A point with a NaN is never on the front and beats none. Raises InputError
    unless there is one cost per value.
    """
    if len(costs) != len(values):
        raise InputError(f"give one cost per value: {len(values)} values, {len(costs)} costs.")
    sign = -1 if higher_is_better else 1
    points = [(cost, sign * value, i) for i, (cost, value) in enumerate(zip(costs, values, strict=True))]
    kept: list[tuple[float, float, int]] = []
    # Cheapest first, and the best of the same cost first: every point can only be beaten by one before it.
    for point in sorted(point for point in points if not (math.isnan(point[0]) or math.isnan(point[1]))):
        if not kept or point[1] < kept[-1][1] or point[:2] == kept[-1][:2]:
            kept.append(point)
    return tuple(i for _, _, i in kept)
