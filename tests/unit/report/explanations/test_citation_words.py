"""Numbers of citations in words."""

from dataclasses import replace

import pytest

from raison.report.explanations.citation_words import goal, score
from tests.unit.explaining.test_cite import cite


@pytest.mark.parametrize(
    ("value", "said"),
    [(-0.0001, "0.00"), (0.5, "+0.50"), (-0.5, "\N{MINUS SIGN}0.50"), (float("nan"), "n/a")],
)
def test_a_score_reads_as_that_of_an_explanation(value: float, said: str) -> None:
    c = cite()
    rows = tuple(tuple(1.0 for _ in row) for row in c.scores)
    known = replace(c, scores=rows, signed=True)
    assert score(known, value) == said


def test_the_quantity_is_named_as_everywhere() -> None:
    assert goal(replace(cite(), of="log_probability")) == "log-probability of each statement"
