"""AML against the paper's equations 1 to 7 and section 3.3, written out: one text at a time, in float64."""

import copy
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

import raison
from raison.core.capabilities.passes import Passes
from raison.core.errors import InputError
from raison.core.method import Cost
from raison.masking.explainer import find
from raison.methods.aml import Aml
from raison.models.adapters.classifier import Classifier
from raison.numerics.losses.attributive_masking import LossWeights
from tests.explainers import STATE, WEIGHTS, edit, maps_of, problem_of
from tests.literal_aml import ENCODERS, SEARCHED, TEXTS, literal_of, one, pair
from tests.toys import generators

CLOSE = {"atol": 1e-5, "rtol": 1e-5}
TUNED = {"atol": 2e-4, "rtol": 0}
"""Of maps after steps: AdamW divides a gradient by its own size, rounding and all."""


@pytest.mark.parametrize("rank", [2, None])
@pytest.mark.parametrize("name", ENCODERS)
def test_without_steps_equals_equation_1(name, rank, tmp_path):
    adapter, literal = pair(name, tmp_path, rank)
    found = maps_of(problem_of(adapter, TEXTS), Aml(str(tmp_path)))
    effects = []
    for text, (scores,) in zip(TEXTS, found, strict=True):
        o = one(literal, adapter, text)
        with torch.no_grad():
            own = literal.map(literal.state, o.ids, o.y)
            expected = literal.units(own, o.owners)
            other = literal.units(literal.map(literal.state, o.ids, torch.eye(3).double()[o.y.argmin()]), o.owners)
        torch.testing.assert_close(scores, expected, **CLOSE)
        assert (own.max() - own.min()) > 1e-2, "a constant map would pass"
        effects.append(float((expected - other).abs().max()))
    assert max(effects) > 1e-3, "a map that does not see the prediction would pass"


@pytest.mark.parametrize("name", ENCODERS)
def test_a_word_has_the_greatest_score_of_its_tokens(name, tmp_path):
    adapter, literal = pair(name, tmp_path)
    problem = problem_of(adapter, TEXTS, "word")
    assert max(problem.encoding.unit_counts) < max(problem_of(adapter, TEXTS).encoding.unit_counts)
    for text, (scores,) in zip(TEXTS, maps_of(problem, Aml(str(tmp_path))), strict=True):
        o = one(literal, adapter, text, "word")
        with torch.no_grad():
            expected = literal.units(literal.map(literal.state, o.ids, o.y), o.owners)
        torch.testing.assert_close(scores, expected, **CLOSE)


def test_another_class_than_the_predicted_one_stands_alone(tmp_path):
    adapter, literal = pair("bert", tmp_path)
    for index, label in enumerate(adapter.classes):
        problem = problem_of(adapter, TEXTS, target=label)
        for text, (first, *_, last) in zip(TEXTS, maps_of(problem, Aml(str(tmp_path), steps=2)), strict=True):
            o = one(literal, adapter, text, index=index)
            expected = literal.tuned(tuned_names(adapter, tmp_path), o, SEARCHED, 2)
            torch.testing.assert_close(first, expected[0], **CLOSE)
            torch.testing.assert_close(last, expected[-1], **TUNED)


def tuned_names(adapter: Classifier, folder: Path) -> list[str]:
    """What is fine-tuned: all of the file but the label embeddings."""
    return [name for name in load_file(folder / STATE) if name not in ("prediction", "labels", "substitute")]


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("rank", [2, None])
@pytest.mark.parametrize("name", ENCODERS)
def test_fine_tuning_equals_the_plain_loop_on_each_text(name, rank, tmp_path):
    adapter, literal = pair(name, tmp_path, rank)
    explainer = find(adapter, str(tmp_path), None)
    before = copy.deepcopy(explainer.attributor.state_dict())
    assert set(explainer.attributor.tuned()) == set(tuned_names(adapter, tmp_path))
    texts = TEXTS if rank else TEXTS[:3]
    found = maps_of(problem_of(adapter, texts), Aml(str(tmp_path), steps=3))
    for text, maps in zip(texts, found, strict=True):
        o = one(literal, adapter, text)
        expected = torch.stack(literal.tuned(tuned_names(adapter, tmp_path), o, SEARCHED, 3))
        torch.testing.assert_close(maps, expected, **TUNED)
        assert (expected[0] - expected[-1]).abs().max() > 20 * TUNED["atol"], "a loop without steps would pass"
    after = explainer.attributor.state_dict()
    assert all(torch.equal(before[key], after[key]) for key in before)


@pytest.mark.parametrize("weights", [{"prediction": 0.0, "inverse": 1.0, "size": 0.2}, WEIGHTS | {"inverse": 0.0}])
def test_fine_tuning_takes_the_weights_and_the_size_of_its_training(weights, tmp_path):
    adapter, _ = pair("bert", tmp_path)
    edit(tmp_path, lambda card: card["goals"]["comprehensiveness"].update(weights=weights))
    literal = literal_of(adapter, tmp_path)
    problem = problem_of(adapter, TEXTS[:1])
    (maps,) = maps_of(problem, Aml(str(tmp_path), steps=2))
    o = one(literal, adapter, TEXTS[0])
    expected = torch.stack(literal.tuned(tuned_names(adapter, tmp_path), o, LossWeights(**weights), 2))
    torch.testing.assert_close(maps, expected, **TUNED)
    # The pass of a loss that is left out is not made: 2 steps of G and one masked text, and a last pass of G.
    assert problem.ledger.evaluations == [5]
    assert problem.ledger.gradients == [4]


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize("name", ENCODERS)
def test_tuning_together_changes_nothing(name, unit, tmp_path):
    adapter, _ = pair(name, tmp_path)
    method = Aml(str(tmp_path), steps=3)
    together = maps_of(problem_of(adapter, TEXTS, unit), method)
    adapter.budget.tokens = 20
    assert len(adapter.ask(Passes).batches(adapter.encode(TEXTS, unit))) > 1
    in_groups = maps_of(problem_of(adapter, TEXTS, unit), method)
    for text, maps, other in zip(TEXTS, together, in_groups, strict=True):
        (alone,) = maps_of(problem_of(adapter, [text], unit), method)
        torch.testing.assert_close(maps, alone, atol=1e-5, rtol=0)
        torch.testing.assert_close(other, alone, atol=1e-5, rtol=0)


def test_counts_its_passes_and_says_what_it_was_trained_for(tmp_path):
    adapter, _ = pair("bert", tmp_path)
    for steps in (0, 3):
        problem = problem_of(adapter, TEXTS[:2])
        method = Aml(str(tmp_path), steps=steps)
        maps = method.candidates(problem, generators(2))
        assert problem.ledger.evaluations == [1 + 3 * steps] * 2
        assert problem.ledger.gradients == [3 * steps] * 2
        assert method.cost(9) == Cost(1 + 3 * steps, 3 * steps)
        assert torch.equal(method.attribute(problem_of(adapter, TEXTS[:2]), generators(2)), maps[-1])
        assert problem.ledger.notes == [{"trained_for": "comprehensiveness"}] * 2


def test_works_under_inference_mode(tmp_path):
    adapter, _ = pair("bert", tmp_path)
    plain = raison.explain(adapter, TEXTS[0], Aml(str(tmp_path), steps=2))
    with torch.inference_mode():
        assert raison.explain(adapter, TEXTS[0], Aml(str(tmp_path), steps=2)).scores == plain.scores


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"steps": -1}, "steps of aml cannot be -1: give a whole number of at least 0"),
        ({"steps": True}, "steps of aml cannot be True"),
        ({"learning_rate": 0.0}, "learning_rate of aml cannot be 0.0: give a number above 0"),
        ({"learning_rate": float("nan")}, "learning_rate of aml cannot be nan"),
    ],
)
def test_refuses_settings_that_cannot_be(settings, said):
    with pytest.raises(InputError) as caught:
        Aml(**settings)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
