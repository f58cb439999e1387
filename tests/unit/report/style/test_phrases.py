"""What is said of numbers."""

import math

import pytest

from raison.core.results.scores import Summary
from raison.report.style import phrases


@pytest.mark.parametrize(
    ("low", "high", "spec", "said"),
    [
        (0.41, 0.583, ".2f", "0.50 [0.41, 0.58]"),
        (-0.1, 1.1, ".0%", "50 % [-10 %, 110 %]"),
        (math.nan, math.nan, ".2f", "0.50"),
        (math.nan, math.nan, "+.1f", "+0.5"),
    ],
)
def test_an_interval_stands_where_it_is_known(low: float, high: float, spec: str, said: str) -> None:
    assert phrases.with_interval(Summary(0.5, low, high, 2), spec) == said


@pytest.mark.parametrize(
    ("value", "places", "said"),
    [(0.25, 2, "+0.25"), (-0.001, 2, "0.00"), (0.0, 3, "0.000"), (-1234567.0, 0, "-1,234,567")],
)
def test_a_score_has_a_sign_unless_it_is_zero(value: float, places: int, said: str) -> None:
    assert phrases.signed(value, places) == said
