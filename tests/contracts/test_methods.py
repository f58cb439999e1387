"""The contract of a method, for every file of the catalogue on every tiny model that has what it needs."""

import copy
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch

import raison
from raison.core.errors import UnsupportedError
from raison.core.explanation import Explanation
from raison.core.method import Method, Property
from raison.core.registry import name_of
from raison.methods import CATALOGUE
from raison.models.attention_explainer import FORMS, Design
from raison.models.classifier import Classifier
from raison.models.explainers import usual_folder
from tests.attention_explainers import untrained_attention
from tests.contracts.conftest import TEXTS
from tests.explainers import untrained
from tests.toys import Ignored, Linear, ToyModel

CLOSE = {"rtol": 2e-3, "atol": 2e-4}


SHORTER = {
    "resampled": "resampled(method='integrated_gradients(steps=4)', baselines=4)",
    "rpi": "rpi(baselines=4, steps=6)",
    "rpi_g": "rpi_g(baselines=4, steps=6)",
    "sequential_integrated_gradients": "sequential_integrated_gradients(steps=8)",
}
"""Calls with fewer passes, for methods whose defaults take hundreds of them."""
FURTHER = ("aml(steps=2)",)
"""Calls that do something else than a method's defaults: fine-tuning on each text."""


@pytest.fixture(params=(*CATALOGUE.names, *FURTHER))
def method(request: pytest.FixtureRequest) -> Method:
    return CATALOGUE.create(SHORTER.get(request.param, request.param))


@pytest.fixture
def able(tiny: Classifier, method: Method, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Classifier:
    """The tiny model, if it has what the method needs; otherwise the refusal is the contract.

    A method that needs an explainer finds one of this model where it looks for it.
    """
    if not method.needs <= tiny.capabilities:
        with pytest.raises(UnsupportedError, match="These methods work"):
            raison.explain(tiny, TEXTS[0], method)
        pytest.skip(f"{tiny.core.config.model_type} lacks {method.needs - tiny.capabilities}")
    if Property.TRAINED in method.properties:
        monkeypatch.setenv("RAISON_CACHE", str(tmp_path))
        folder = usual_folder(tiny.name, name_of(method))
        if name_of(method) in FORMS:
            untrained_attention(tiny, folder, Design(name_of(method)))
        else:
            untrained(tiny, folder)
    return tiny


def fingerprint(model: Classifier) -> str:
    """Everything of the caller's that a method could have changed."""
    digest = hashlib.sha256()
    for name, tensor in sorted(model.model.state_dict().items()):
        digest.update(name.encode() + tensor.numpy().tobytes())
    state = {
        "config": model.model.config.to_dict(),
        "attention": model.core.config._attn_implementation,
        "training": [module.training for module in model.model.modules()],
        "requires": [parameter.requires_grad for parameter in model.model.parameters()],
        "grads": [parameter.grad is None for parameter in model.model.parameters()],
        "hooks": [
            len(module._forward_hooks) + len(module._forward_pre_hooks) + len(module._backward_hooks)
            for module in model.model.modules()
        ],
        "tokenizer": model.tokenizer.backend_tokenizer.to_str(),
        "special": model.tokenizer.special_tokens_map,
        "torch": torch.get_rng_state().tolist(),
        "numpy": np.random.get_state(legacy=False)["state"]["key"].tolist(),
    }
    digest.update(json.dumps(state, sort_keys=True, default=str).encode())
    return digest.hexdigest()


def scores(explanations: list[Explanation]) -> list[np.ndarray]:
    return [np.array(explanation.scores) for explanation in explanations]


@pytest.mark.parametrize("unit", ["token", "word", "sentence"])
def test_scores_every_unit_with_a_finite_number(able: Classifier, method: Method, unit: str) -> None:
    for explanation in raison.explain(able, TEXTS, method, unit=unit):
        assert len(explanation.scores) == len(explanation.units) > 0
        assert np.isfinite(explanation.scores).all()
        assert explanation.unit == unit


def test_model_tokenizer_and_random_state_are_untouched(able: Classifier, method: Method) -> None:
    able.model.train()
    before = fingerprint(able)
    raison.explain(able, TEXTS, method)
    assert fingerprint(able) == before


def test_batch_and_padding_change_nothing(able: Classifier, method: Method) -> None:
    together = raison.explain(able, TEXTS, method, of="logit")
    for text, batched in zip(TEXTS, together, strict=True):
        alone = raison.explain(able, text, method, of="logit")
        np.testing.assert_allclose(batched.scores, alone.scores, **CLOSE)


def test_same_seed_same_scores(able: Classifier, method: Method) -> None:
    first, second, other = (raison.explain(able, TEXTS, method, seed=seed) for seed in (3, 3, 4))
    assert all(np.array_equal(a, b) for a, b in zip(scores(first), scores(second), strict=True))
    if Property.RANDOM not in method.properties:
        assert all(np.array_equal(a, b) for a, b in zip(scores(first), scores(other), strict=True))


def test_counted_passes_equal_the_stated_cost(able: Classifier, method: Method) -> None:
    for explanation in raison.explain(able, TEXTS, method):
        cost = method.cost(len(explanation.units))
        assert explanation.evaluations <= cost.forwards
        assert explanation.gradients == cost.backwards
        if Property.RANDOM not in method.properties:
            assert explanation.evaluations == cost.forwards


def test_passes_are_really_those_that_the_model_made(able: Classifier, method: Method) -> None:
    """Count sequences at the embedding table, where no adapter can miscount."""
    # A causal model is tried once, whether it can run many sequences as one.
    raison.explain(able, TEXTS[1], "occlusion")
    # An explainer is loaded, and checked against the model, once.
    method.check(able)
    rows: list[int] = []
    handle = able.embedding_table.register_forward_hook(lambda _m, args, _o: rows.append(args[0].shape[0]))
    try:
        explanation = raison.explain(able, TEXTS[0], method)
    finally:
        handle.remove()
    # Beside the method's own: the whole and the empty text, embeddings looked up for a path's two ends, and one row
    # with its backward pass to find where an encoder predicts from.
    assert sum(rows) <= explanation.evaluations + 6
    # A causal model runs many sequences as one row, and a partial pass starts above the table.
    unseen = able.readout is not None or Property.PARTIAL in method.properties
    assert unseen or explanation.evaluations <= sum(rows)


def test_json_round_trip(able: Classifier, method: Method) -> None:
    explanation = raison.explain(able, TEXTS[0], method)
    assert Explanation.from_json(explanation.to_json()) == explanation


def test_complete_methods_sum_to_the_difference(able: Classifier, method: Method) -> None:
    if Property.COMPLETE not in method.properties:
        pytest.skip("claims no completeness")
    for explanation in raison.explain(able, TEXTS, method, of="logit"):
        span = abs(explanation.value_full - explanation.value_empty)
        allowed = explanation.notes.get("completeness_gap")
        if allowed is not None:
            assert explanation.completeness_gap == pytest.approx(allowed, abs=1e-3)
        else:
            assert abs(explanation.completeness_gap) < 1e-4 * max(1.0, span)


def test_bfloat16_models_are_explained_too(able: Classifier, method: Method) -> None:
    half = raison.load(copy.deepcopy(able.model).to(torch.bfloat16), able.tokenizer)
    for explanation in raison.explain(half, TEXTS, method):
        assert np.isfinite(explanation.scores).all()


def test_signed_methods_change_sign_with_the_target(able: Classifier, method: Method) -> None:
    if Property.SIGNED not in method.properties or Property.RANDOM in method.properties:
        pytest.skip("unsigned or random")
    for_it, against_it = (
        raison.explain(able, TEXTS[0], method, target=pair, of="logit")
        for pair in (("negative", "positive"), ("positive", "negative"))
    )
    np.testing.assert_allclose(np.array(for_it.scores), -np.array(against_it.scores), **CLOSE)


def test_reference_is_in_the_bibliography(method: Method) -> None:
    bibliography = Path(__file__).parents[2].joinpath("docs/references.bib").read_text(encoding="utf-8")
    assert f"{{{method.reference}," in bibliography


def toy_scores(model: ToyModel, text: str, method: Method) -> dict[str, float]:
    if not method.needs <= model.capabilities:
        pytest.skip(f"the toy lacks {method.needs - model.capabilities}")
    explanation = raison.explain(model, text, method, target=1, of="logit")
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
    found = toy_scores(Linear(), "good um film bad not fine", method)
    assert found["bad"] < 0 < found["good"]
    assert found["not"] < 0 < found["fine"]
