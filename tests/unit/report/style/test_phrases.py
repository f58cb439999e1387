"""What is said of numbers."""

import math

import pytest

from raison.core.results.scores import Summary
from raison.report.style import phrases


@pytest.mark.parametrize(
    ("low", "high", "spec", "said"),
    [
        (0.41, 0.583, ".2f", "0.50 [0.41, 0.58]"),
        (-0.1, 1.1, ".0%", "50% [-10%, 110%]"),
        (math.nan, math.nan, ".2f", "0.50"),
        (math.nan, math.nan, "+.1f", "+0.5"),
    ],
)
def test_an_interval_stands_where_it_is_known(low: float, high: float, spec: str, said: str) -> None:
    assert phrases.with_interval(Summary(0.5, low, high, 2), spec) == said
