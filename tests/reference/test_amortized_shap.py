"""amortized_shap against its sum written out, its targets against kernel_shap, and what it learns."""

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import raison
from raison.core.errors import DataError, InputError, LoadError, UnsupportedError
from raison.data import Dataset, Row
from raison.jobs.store import RecordStore
from raison.methods.amortized_shap import AmortizedShap
from raison.models.adapters.classifier import Classifier
from raison.models.derived.amortized import STATE, read_card
from raison.training.preparation.samples import split
from raison.training.recipes import amortized_shap as recipe
from raison.training.recipes.amortized_shap import AmortizedShapSettings, train_amortized_shap
from tests.explainers import edit, maps_of, problem_of, untrained_values
from tests.literal_aml import ENCODERS, TEXTS, Literal, one
from tests.planted import Planted, quick_settings, texts
from tests.tiny import build

WORDS = "the film is a dull and quiet pleasure but not good for its loud end".split()
DATA = Dataset("tiny", tuple(Row(" ".join(WORDS[n % 7 : n % 7 + 3 + n % 6]), None, n) for n in range(12)), (), "", ())
SETTINGS = AmortizedShapSettings(
    samples=16, texts=8, validation=4, epochs=2, batch_size=4, rank=4, learning_rate=0.02, progress=False
)


def adapter_of(name: str = "bert") -> Classifier:
    adapter = raison.load(*build(name))
    assert isinstance(adapter, Classifier)
    return adapter


def literal_of(adapter: Classifier, folder: Path) -> Literal:
    model = copy.deepcopy(adapter.model).double()
    state = {name: tensor.double() for name, tensor in load_file(folder / STATE).items()}
    return Literal(model, copy.deepcopy(model.base_model), state, adapter.tokenizer.mask_token_id)


@pytest.mark.parametrize("rank", [2, None])
@pytest.mark.parametrize("name", ENCODERS)
def test_a_word_has_the_sum_of_its_tokens(name: str, rank: int | None, tmp_path: Path) -> None:
    adapter = adapter_of(name)
    scale = untrained_values(adapter, tmp_path, rank=rank).scale
    literal, method = literal_of(adapter, tmp_path), AmortizedShap(str(tmp_path))
    weights, biases = (literal.state.pop(f"output.{name}") for name in ("weight", "bias"))
    for label in (0, 2):
        # The literal map is that of one output, squeezed.
        literal.state.update({"output.weight": weights[label : label + 1], "output.bias": biases[label : label + 1]})
        problem = problem_of(adapter, TEXTS, "word", target=adapter.classes[label])
        for text, (found,) in zip(TEXTS, maps_of(problem, method), strict=True):
            o = one(literal, adapter, text, "word")
            with torch.no_grad():
                tokens = scale * torch.logit(literal.map(literal.state, o.ids, o.y))
            expected = [float(tokens[o.owners == unit].sum()) for unit in range(int(o.owners.max()) + 1)]
            torch.testing.assert_close(found, torch.tensor(expected).double(), atol=1e-5, rtol=1e-4)
        assert problem.ledger.evaluations == [1] * len(TEXTS)


def test_a_contrast_is_the_difference_of_two_outputs(tmp_path: Path) -> None:
    adapter = adapter_of()
    untrained_values(adapter, tmp_path)
    method, text = f"amortized_shap(checkpoint={str(tmp_path)!r})", TEXTS[0]
    this, that = (raison.explain(adapter, text, method, target=label).scores for label in adapter.classes[:2])
    both = raison.explain(adapter, text, method, target=adapter.classes[:2])
    assert both.scores == pytest.approx(np.subtract(this, that))
    assert np.abs(both.scores).max() > 1e-3
    assert both.evaluations == 1


def test_what_was_not_learned_is_refused(tmp_path: Path) -> None:
    adapter = adapter_of()
    untrained_values(adapter, tmp_path)
    method = f"amortized_shap(checkpoint={str(tmp_path)!r})"
    with pytest.raises(InputError, match="was trained for of='probability' and cannot explain of='logit'"):
        raison.explain(adapter, TEXTS[0], method, of="logit")
    with pytest.raises(InputError, match="was trained for removal='mask', not 'delete': use removal='mask', or train"):
        raison.explain(adapter, TEXTS[0], method, removal="delete")
    with pytest.raises(UnsupportedError, match="was trained for .* and does not explain"):
        raison.explain(adapter_of("roberta"), TEXTS[0], method)
    edit(tmp_path, lambda card: card.update(scale=-1))
    with pytest.raises(LoadError, match="scale"):
        raison.explain(adapter, TEXTS[0], method)
    with pytest.raises(LoadError, match="raison train amortized-shap --model"):
        raison.explain(adapter, TEXTS[0], f"amortized_shap(checkpoint={str(tmp_path / 'none')!r})")


def test_its_targets_are_those_of_kernel_shap(tmp_path: Path) -> None:
    adapter = adapter_of()
    before = torch.get_rng_state()
    card = train_amortized_shap(adapter, DATA, tmp_path, SETTINGS)
    kept = [row for record in RecordStore(tmp_path / recipe.JOURNAL).read().records for row in record["texts"]]
    assert torch.equal(torch.get_rng_state(), before)
    learned, held_out = split(DATA, None, 8, 4, SETTINGS.seed)
    given = [*learned.texts, *held_out.texts]
    method = "kernel_shap(samples=16, estimator='gaussian_process')"
    for number, label in enumerate(adapter.classes):
        for record, explanation in zip(kept, raison.explain(adapter, given, method, target=label), strict=True):
            assert record["probabilities"] == pytest.approx(explanation.probabilities, abs=1e-6)
            assert record["values"][str(number)] == pytest.approx(explanation.scores, abs=1e-6)
    everything = np.concatenate([own for record in kept[:8] for own in record["values"].values()])
    assert card.scale == pytest.approx(np.sqrt(np.mean(everything**2)))
    assert read_card(tmp_path, "") == card


def test_values_are_taken_over_for_another_rank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter, other = adapter_of(), replace(SETTINGS, rank=2, epochs=1)
    first, anew, taken = (tmp_path / name for name in ("first", "anew", "taken"))
    train_amortized_shap(adapter, DATA, first, SETTINGS)
    expected = train_amortized_shap(adapter, DATA, anew, other)
    for changed in (replace(other, samples=8), replace(other, seed=1)):
        with pytest.raises(DataError, match="differ in settings of the Shapley values"):
            train_amortized_shap(adapter, DATA, taken, changed, values=first)
    with pytest.raises(DataError, match="differ in model weights"):
        train_amortized_shap(adapter_of("roberta"), DATA, taken, other, values=first)
    with pytest.raises(DataError, match="has no Shapley values"):
        train_amortized_shap(adapter, DATA, taken, other, values=tmp_path / "none")
    monkeypatch.setattr(recipe, "prepare", None)
    found = train_amortized_shap(adapter, DATA, taken, replace(other, of="probability"), values=first)
    assert found.provenance["epochs"] == expected.provenance["epochs"]
    states = [load_file(folder / STATE) for folder in (anew, taken)]
    assert all(torch.equal(tensor, states[1][name]) for name, tensor in states[0].items())


def test_a_deleted_line_of_values_is_estimated_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe, "BATCH", 4)
    adapter, (whole, broken) = adapter_of(), (tmp_path / "whole", tmp_path / "broken")
    train_amortized_shap(adapter, DATA, whole, SETTINGS)
    lines = (whole / recipe.JOURNAL).read_text().splitlines(keepends=True)
    assert len(lines) == 3
    (whole / recipe.JOURNAL).write_text("".join(lines[:1] + lines[2:]))
    train_amortized_shap(adapter, DATA, broken, SETTINGS, values=whole)
    assert (broken / recipe.JOURNAL).read_text().splitlines(keepends=True) == lines[:1] + lines[2:] + lines[1:2]
    assert torch.equal(load_file(broken / STATE)["output.weight"], load_file(whole / STATE)["output.weight"])


def test_values_of_calls_of_another_size_are_estimated_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adapter, (small, large, taken) = adapter_of(), (tmp_path / name for name in ("small", "large", "taken"))
    train_amortized_shap(adapter, DATA, large, SETTINGS)
    monkeypatch.setattr(recipe, "BATCH", 4)
    train_amortized_shap(adapter, DATA, small, SETTINGS)
    monkeypatch.undo()
    # Once a line had the values of one text.
    RecordStore(small / recipe.JOURNAL).append([{"probabilities": [0.5, 0.5], "values": {}}])
    train_amortized_shap(adapter, DATA, taken, SETTINGS, values=small)
    weights = [load_file(folder / STATE)["output.weight"] for folder in (large, taken)]
    assert torch.equal(*weights)


@pytest.mark.thorough
def test_the_word_that_decides_is_found_for_both_classes(tmp_path: Path) -> None:
    model, fresh = Planted(), texts(20, 1)
    given = replace(SETTINGS, backbone=quick_settings(tmp_path / "bert").backbone, rank=None, learning_rate=0.01)
    settings = replace(given, texts=160, validation=40, epochs=6, batch_size=20, samples=32)
    card = train_amortized_shap(model, texts(200, 0), tmp_path / "trained", settings)
    assert card.provenance["correlation"]["held_out"] == pytest.approx(max(card.provenance["epochs"]), abs=1e-3)
    method = f"amortized_shap(checkpoint={str(tmp_path / 'trained')!r})"
    for label in model.classes:
        found = raison.explain(model, list(fresh.texts), method, target=label)
        exact = raison.explain(model, list(fresh.texts), "shapley_exact", target=label)
        fits = [np.corrcoef(f.scores, e.scores)[0, 1] for f, e in zip(found, exact, strict=True)]
        assert np.mean(fits) > 0.9


def test_what_cannot_be_trained_is_refused_before_anything_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = adapter_of()
    monkeypatch.setattr(recipe, "prepare", None)
    with pytest.raises(InputError, match="cannot remove words by 'ellipsis'"):
        train_amortized_shap(adapter, DATA, tmp_path, AmortizedShapSettings(removal="ellipsis"))
    with pytest.raises(InputError, match="has 12 texts, but 5200 are needed"):
        train_amortized_shap(adapter, DATA, tmp_path, AmortizedShapSettings())
    (tmp_path / "else").write_text("x")
    with pytest.raises(DataError, match="holds other files"):
        train_amortized_shap(adapter, DATA, tmp_path, SETTINGS)
