"""The points that no other point beats."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raison.core.errors import InputError
from raison.numerics.statistics.pareto import front

# Few different numbers, so that ties are common.
NUMBERS = st.sampled_from([0.0, 1.0, 2.0, 3.0, -1.0, math.inf, -math.inf, math.nan])
POINTS = st.lists(st.tuples(NUMBERS, NUMBERS), max_size=8)


def beats(one: tuple[float, float], other: tuple[float, float], higher: bool) -> bool:
    at_least = one[1] >= other[1] if higher else one[1] <= other[1]
    better = one[0] < other[0] or (one[1] > other[1] if higher else one[1] < other[1])
    return one[0] <= other[0] and at_least and better


@given(POINTS, st.booleans())
def test_agrees_with_comparing_all_pairs(points: list[tuple[float, float]], higher: bool) -> None:
    there = [i for i, point in enumerate(points) if not any(math.isnan(x) for x in point)]
    expected = [i for i in there if not any(beats(points[j], points[i], higher) for j in there)]
    found = front([cost for cost, _ in points], [value for _, value in points], higher)
    # Stable: equal points in the order given.
    assert list(found) == sorted(expected, key=lambda i: points[i][0])


def test_a_worked_example() -> None:
    costs = [10.0, 1.0, 5.0, 5.0, 20.0]
    values = [0.7, 0.2, 0.6, 0.6, 0.7]
    assert front(costs, values) == (1, 2, 3, 0)
    assert front(costs, values, higher_is_better=False) == (1,)


def test_no_points() -> None:
    assert front([], []) == ()
    assert front([math.nan], [1.0]) == ()


def test_one_cost_per_value() -> None:
    with pytest.raises(InputError, match="2 values, 1 costs"):
        front([1.0], [1.0, 2.0])
