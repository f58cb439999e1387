"""Holm's adjusted p-values."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raison.core.errors import InputError
from raison.numerics.statistics.multiple import holm


def rejected(p_values: list[float], level: Fraction) -> set[int]:
    """Holm's procedure as he states it: from the smallest on, reject while p <= level / (tests that are left)."""
    left = sorted(range(len(p_values)), key=lambda i: p_values[i])
    found = set()
    while left and Fraction(p_values[left[0]]) * len(left) <= level:
        found.add(left.pop(0))
    return found


def test_a_worked_example() -> None:
    # Four times the smallest, three times the next, twice the third; the largest is raised to the one before it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0, 1))
def test_adjusted_values_decide_as_the_procedure_does(p_values: list[float], level: float) -> None:
    adjusted = holm(p_values)
    # At levels that some adjusted value lies on, rounding decides; the levels in between are tested.
    if all(abs(p - level) > 1e-9 for p in adjusted):
        assert {i for i, p in enumerate(adjusted) if p <= level} == rejected(p_values, Fraction(level))


@given(st.lists(st.floats(0, 1), max_size=8))
def test_agrees_with_the_definition(p_values: list[float]) -> None:
    order = sorted(p_values)
    for p, adjusted in zip(p_values, holm(p_values), strict=True):
        last = max(j for j, other in enumerate(order) if other == p)
        assert adjusted == pytest.approx(min(1, max((len(order) - j) * order[j] for j in range(last + 1))), abs=1e-12)


def test_equal_p_values_stay_equal() -> None:
    assert holm([0.02, 0.5, 0.02]) == pytest.approx([0.06, 0.5, 0.06])


def test_missing_tests_do_not_count() -> None:
    first, missing, second = holm([0.02, math.nan, 0.03])
    assert (first, second) == pytest.approx((0.04, 0.04))
    assert math.isnan(missing)


def test_one_test_and_none() -> None:
    assert holm([0.2]) == (0.2,)
    assert holm([]) == ()


@pytest.mark.parametrize("wrong", [-0.1, 1.5, math.inf])
def test_what_is_no_p_value(wrong: float) -> None:
    with pytest.raises(InputError, match=f"got {wrong}"):
        holm([0.1, wrong])
