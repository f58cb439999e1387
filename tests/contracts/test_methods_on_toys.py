"""What a method claims of its scores, on models whose effects are known."""

from itertools import groupby

import numpy as np
import pytest

import raison
from raison.core.errors import RaisonError
from raison.core.method import Method, Property
from raison.core.note_names import GROUPS
from raison.methods.occlusion import Occlusion
from tests.contracts.test_methods import method
from tests.toys import Ignored, Linear, ToyModel, game_problem, generators, named

__all__ = ["method"]


def toy_scores(model: ToyModel, text: str, method: Method) -> dict[str, float]:
    if reasons := method.lacking(model):
        pytest.skip(f"{model.name}: {reasons}")
    explanation = raison.explain(model, text, method, target=1, of="logit")
    assert (GROUPS in explanation.notes) == (Property.GROUPED in method.properties)
    return {unit.text: score for unit, score in zip(explanation.units, explanation.scores, strict=True)}


def test_a_unit_that_the_model_ignores_scores_zero(method: Method) -> None:
    if Property.DUMMY not in method.properties:
        pytest.skip("claims no dummy property")
    found = toy_scores(Ignored(), "good um film bad", method)
    assert found["um"] == pytest.approx(0, abs=1e-9)
    assert max(abs(score) for score in found.values()) > 0.1


def test_signed_methods_tell_for_from_against(method: Method) -> None:
    if Property.SIGNED not in method.properties:
        pytest.skip("claims no sign")
    if Property.TRAINED in method.properties:
        pytest.skip("needs an explainer that has learned")
    found = toy_scores(Linear(), "good um film bad not fine", method)
    claim = f"{method} is SIGNED: what counts against the target has to score below zero, what counts for it above"
    assert max(found["bad"], found["not"]) < 0 < min(found["good"], found["fine"]), claim


def test_signed_methods_find_what_speaks_against_the_toy(method: Method) -> None:
    model = Linear()
    try:
        method.check(model)
    except RaisonError as refusal:
        pytest.skip(str(refusal))
    scores = toy_scores(model, "good um film bad not fine", method).values()
    assert min(scores) < 0 if method.signed else min(scores) >= 0


def test_linear_methods_recover_a_linear_value(method: Method) -> None:
    """Up to a common factor, since a penalty shrinks all coefficients."""
    if Property.LINEAR not in method.properties:
        pytest.skip("claims no linear model")
    found, effects = (toy_scores(Linear(), "good um film bad not fine", each) for each in (method, Occlusion()))
    assert np.corrcoef([*found.values()], [*effects.values()])[0, 1] > 0.999


@pytest.mark.parametrize("names", ["aabccc", "abcdef", "aaaaaa"])
def test_grouped_methods_score_runs_of_units_within_the_keeps_that_they_state(method: Method, names: str) -> None:
    if Property.GROUPED not in method.properties:
        pytest.skip("claims no scores of groups")
    asked, groups = set(), [*groupby(range(len(names)), names.__getitem__)]
    for seed in range(20):
        problem = named(game_problem(np.random.default_rng(seed).normal(size=2 ** len(names))), names)
        method.attribute(problem, generators(1))
        [notes] = problem.ledger.notes
        assert len(notes[GROUPS]) == len(groups)
        asked |= problem.evaluations.logits.keys()
    assert len(asked) <= method.most_keeps(len(names), len(groups))
