"""What is said of scores that do not add up to the change in value."""

from dataclasses import replace

import pytest

import raison
from raison.core.note_names import COMPLETENESS_GAP
from raison.core.results.generation import GenerationExplanation
from raison.report.explanations.facts import facts
from raison.report.style import gaps
from raison.report.style.phrases import cautions
from tests.explained import of_words
from tests.tiny import build_language_model


def test_a_gap_that_is_only_rounding_is_none() -> None:
    e = of_words("so good", (0.1, 0.4))
    assert gaps.completeness(e, 6.8e-15) == "none: the scores add up to the change in value"
    assert gaps.completeness(e, -0.46).startswith("-0.46 between the sum of the scores")


@pytest.mark.parametrize(("gap", "warned"), [(0.3, True), (-0.2, True), (0.05, False), (float("nan"), False)])
def test_a_wide_gap_is_warned_of(gap: float, warned: bool) -> None:
    e = replace(of_words("so good", (0.1, 0.4)), notes={COMPLETENESS_GAP: gap})
    assert any("the scores add up to +0.5, but the value changes by" in said for said in cautions(e)) is warned


def test_numbers_without_bound_are_drawn() -> None:
    """Records may come from an enemy."""
    e = replace(of_words("so good", (1.7e308, 1.7e308)), notes={COMPLETENESS_GAP: -1.7e308})
    assert isinstance(cautions(e), list)


def test_a_method_that_notes_no_gap_is_not_warned_of() -> None:
    assert gaps.caution_of_gap(of_words("so good", (0.1, 0.4))) is None


def test_the_tokens_of_an_output_are_counted() -> None:
    writer = raison.load(*build_language_model("gpt2"))
    e = raison.explain(writer, "a calm sea", "integrated_gradients(steps=1)", max_new_tokens=3)
    assert isinstance(e, GenerationExplanation)
    noted = [e.token(number).notes[COMPLETENESS_GAP] for number in range(len(e.tokens))]
    assert e.notes[COMPLETENESS_GAP] == pytest.approx(sum(noted))
    assert facts(e)["Gap"] == f"{sum(noted):+.2g} between the sums of the scores and the changes in value"
    assert not any("completeness_gap" in name for name in facts(e))
    for gap, said in ((1e3, "the scores of 3 of 3 output tokens are far"), (0.0, None)):
        tokens = tuple(replace(token, notes={**token.notes, COMPLETENESS_GAP: gap}) for token in e.tokens)
        found = gaps.caution_of_gap(replace(e, tokens=tokens))
        assert (found is None) if said is None else (found or "").startswith(said)
