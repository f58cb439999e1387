"""The contract of a method, for every file of the catalogue on every tiny model that has what it needs."""

import copy
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import raison
from raison.core.capabilities.rules import BackwardRules
from raison.core.errors import UnsupportedError
from raison.core.method import Method, Property
from raison.core.model import LanguageModel
from raison.core.registry import name_of
from raison.core.results.explanation import Explanation
from raison.core.targets.choices import Of
from raison.explaining.attribution import unfit
from raison.methods import CATALOGUE
from raison.models.adapters.classifier import Classifier
from raison.models.derived.explainers import usual_folder
from raison.models.stack.layers import layer_stack
from tests.contracts.conftest import TEXTS
from tests.pass_formulas import passes_of, reached
from tests.reused import reused
from tests.tiny import TINY
from tests.toys import TEXTS as TOY_TEXTS
from tests.toys import Attending, Linear
from tests.untrained import untrained_for

CLOSE = {"rtol": 2e-3, "atol": 2e-4}
SHORTER = {
    "discretized_integrated_gradients": "discretized_integrated_gradients(steps=4)",
    "gradient_shap": "gradient_shap(samples=6)",
    "integrated_gradients": "integrated_gradients(steps=8)",
    "kernel_shap": "kernel_shap(samples=48)",
    "lime": "lime(samples=48)",
    "reagent": "reagent(runs=2, max_steps=6)",
    "smooth_grad": "smooth_grad(samples=6)",
    "resampled": "resampled(method='integrated_gradients(steps=4)', baselines=4)",
    "rpi": "rpi(baselines=4, steps=6)",
    "rpi_g": "rpi_g(baselines=4, steps=6)",
    "solvex": "solvex(beam=1)",
    "sequential_integrated_gradients": "sequential_integrated_gradients(steps=4)",
    "shapley_sampling": "shapley_sampling(samples=48)",
}
"""Calls with fewer passes, for methods whose defaults take hundreds of them."""
SIGN_BY_SETTING = (
    "ensemble(methods=('saliency', 'attention_average'))",
    "ensemble(methods=('saliency', 'input_x_gradient'))",
    "saliency(features='sum')",
    "smooth_grad(samples=6, score='input_x_gradient')",
)
"""Calls whose settings decide whether scores can be below zero, otherwise than a method's defaults do."""
FURTHER = ("aml(steps=2)", "kernel_shap(samples=32, estimator='gaussian_process')")
"""Calls that do something else than a method's defaults: fine-tuning on each text, another way to the same values."""
SHORT_TEXTS = ["a dull plot", "dull", "the end is good"]
MANY = 300
"""Passes for a text of the usual length from which a method gets the short ones."""


@pytest.fixture(params=(*CATALOGUE.names, *FURTHER))
def method(request: pytest.FixtureRequest) -> Method:
    return CATALOGUE.create(SHORTER.get(request.param, request.param))


@pytest.fixture
def texts(method: Method) -> list[str]:
    """Three texts of different lengths, the middle one the shortest."""
    return SHORT_TEXTS if method.cost(len(TEXTS[0].split())).forwards > MANY else TEXTS


@pytest.fixture
def brief() -> list[str]:
    """Two texts of different lengths for what no word more would show."""
    return SHORT_TEXTS[:2]


@pytest.fixture
def able(tiny: Classifier, method: Method, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Classifier:
    """The tiny model, if it has what the method needs; otherwise the refusal is the contract.

    A method that needs an explainer finds one of this model where it looks for it.
    """
    if reasons := method.lacking(tiny):
        refused_by_capability(tiny, method)
        pytest.skip(f"{tiny.core.config.model_type}: {reasons}")
    if Property.TRAINED in method.properties:
        monkeypatch.setenv("RAISON_CACHE", str(tmp_path))
        # All that is explained here is a logit.
        untrained_for(name_of(method), tiny, usual_folder(tiny.name, name_of(method)), of="logit")
    refused_by_method(tiny, method)
    return tiny


def refused_by_capability(model: Classifier, method: Method) -> None:
    """Every missing capability by its name, and methods that would work: all of the catalogue that the model allows."""
    with pytest.raises(UnsupportedError) as caught:
        raison.explain(model, TEXTS[0], method)
    missing = [kind.name for kind in method.needs if not model.offers(kind)]
    assert len(caught.value.reasons) == len(missing) > 0
    for capability in missing:
        assert any(f"capability '{capability}'" in reason for reason in caught.value.reasons)
    instead = str(caught.value).rpartition("These methods work: ")[2].strip(".").split(", ")
    assert instead == [name for name in CATALOGUE.names if not unfit(model, CATALOGUE.create(name))]
    assert "random" in instead


def refused_by_method(model: Classifier, method: Method) -> None:
    """What a method asks for beyond capabilities is told before anything runs: why, and what would work instead."""
    refusal = refusal_of(model, method)
    if refusal is None:
        return
    way_out = str(refusal).partition("; ".join(refusal.reasons) + ".")[2]
    named = [name for name in CATALOGUE.names if re.search(rf"\b{name}\b", way_out)]
    assert named, f"the refusal names no method that would work instead: {refusal}"
    for name in named:
        assert not CATALOGUE.get(name).lacking(model), f"{name} would not work either: {refusal}"
    with pytest.raises(UnsupportedError):
        raison.explain(model, TEXTS[0], method)
    pytest.skip(str(refusal))


def refusal_of(model: LanguageModel, method: Method) -> UnsupportedError | None:
    """What the method itself says where it cannot work on the model."""
    try:
        method.check(model)
    except UnsupportedError as refusal:
        return refusal
    return None


def digest(tensor: Tensor) -> str:
    return hashlib.sha256(tensor.detach().numpy().tobytes()).hexdigest()


def fingerprint(model: Classifier) -> dict[str, str]:
    """Everything of the caller's that a method could have changed: digests, by what they are of."""
    state = {
        "weights": [(name, digest(tensor)) for name, tensor in sorted(model.model.state_dict().items())],
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
        "torch": digest(torch.get_rng_state()),
        "numpy": np.random.get_state(legacy=False)["state"]["key"].tolist(),
    }
    return {
        name: hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()
        for name, value in state.items()
    }


@pytest.mark.parametrize("unit", ["token", "sentence"])
def test_scores_every_unit_with_a_finite_number(able: Classifier, method: Method, brief: list[str], unit: str) -> None:
    check_scores(raison.explain(able, brief, method, unit=unit, of="logit"), unit)


def check_scores(explanations: list[Explanation], unit: str) -> None:
    """A finite number for every unit."""
    for explanation in explanations:
        assert len(explanation.scores) == len(explanation.units) > 0
        assert np.isfinite(explanation.scores).all()
        assert explanation.unit == unit


@pytest.mark.new_model
def test_model_tokenizer_and_random_state_are_untouched(able: Classifier, method: Method, brief: list[str]) -> None:
    able.model.train()
    before = fingerprint(able)
    raison.explain(able, brief, method, of="logit")
    assert fingerprint(able) == before


def test_batches_seeds_passes_and_claims(able: Classifier, method: Method, texts: list[str]) -> None:
    """What holds of the same explanations, which take most of the time: one test for all of it."""
    # A causal model is tried once, whether it can run many sequences as one.
    raison.explain(able, texts[1], "occlusion")
    together = raison.explain(able, texts, method, of="logit", seed=3)
    check_scores(together, "word")
    for explanation in together:
        check_passes(method, explanation, able.encode([explanation.text], "word").lengths[0])
        check_completeness(method, explanation)
        assert Explanation.from_json(explanation.to_json()) == explanation
    # The longest text is no different in its batch: it has no padding.
    alone = [raison.explain(able, text, method, of="logit", seed=3).scores for text in texts[:2]]
    for batched, scored in zip(together, alone, strict=False):
        np.testing.assert_allclose(batched.scores, scored, **CLOSE)
    # With fewer words many random methods are exact, and with more auto takes a method that draws nothing.
    drawn = Property.RANDOM in method.properties
    text = "the film is a dull and quiet pleasure but not good end" if drawn and isinstance(texts[1], str) else texts[0]
    first = alone[0] if text == texts[0] else raison.explain(able, text, method, of="logit", seed=3).scores
    assert first == raison.explain(able, text, method, of="logit", seed=3).scores
    second = raison.explain(able, text, method, of="logit", seed=4).scores
    assert (first != second) == drawn, "Property.RANDOM says that the seed matters"


@pytest.mark.parametrize("passes", ["none", "1 foward", "at most the sum of its parts'", ""])
def test_passes_that_cannot_be_read_are_refused(passes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    method = CATALOGUE.create("saliency")
    assert passes_of(method, 3, 5) is not None
    monkeypatch.setattr(type(method), "passes", passes)
    with pytest.raises(ValueError, match=r"cannot read the passes of saliency, .*: give '0', 'SUM fo"):
        passes_of(method, 3, 5)


def check_passes(method: Method, explanation: Explanation, tokens: int) -> None:
    """What was counted is what the table of methods says, and what `cost` says; a bound is one."""
    units, counted = len(explanation.units), (explanation.evaluations, explanation.gradients)
    stated = passes_of(method, units, tokens)
    cost = method.cost(tokens if stated is not None and stated.by_tokens else units)
    if stated is not None and stated.either:
        assert explanation.evaluations + 2 * explanation.gradients <= min(stated.forwards, cost.forwards)
        return
    assert explanation.evaluations <= cost.forwards
    assert explanation.gradients == cost.backwards
    if stated is None:
        # Made of other methods, each of which is checked here itself.
        return
    if stated.exact:
        assert counted == (cost.forwards, cost.backwards) == (stated.forwards, stated.backwards)
    else:
        assert explanation.evaluations <= stated.forwards
        assert explanation.gradients == stated.backwards
        assert cost.forwards <= stated.forwards


@pytest.mark.parametrize("unit", ["token", "word"])
def test_counted_passes_are_those_of_the_formula_on_toys(method: Method, unit: str) -> None:
    toy = next((toy for toy in (Linear(), Attending()) if not method.lacking(toy)), None)
    if toy is None:
        pytest.skip("no toy has what the method needs")
    if Property.TRAINED in method.properties or refusal_of(toy, method) is not None:
        pytest.skip("needs more than a toy has")
    explained = raison.explain(toy, list(TOY_TEXTS), method, unit=unit)
    tokens = [toy.encode([e.text], unit).lengths[0] for e in explained]
    for explanation, count in zip(explained, tokens, strict=True):
        check_passes(method, explanation, count)
    assert max(map(reached, [method] * len(explained), explained, tokens)) >= 0.2, "a bound is no guess"


@pytest.mark.new_model
def test_passes_are_really_those_that_the_model_made(able: Classifier, method: Method, texts: list[str]) -> None:
    """Count sequences at the embedding table, where no adapter can miscount."""
    # A causal model is tried once, whether it can run many sequences as one.
    raison.explain(able, texts[1], "occlusion")
    # An explainer is loaded, and checked against the model, once.
    method.check(able)
    rows: list[int] = []
    if able.core.config.model_type == "xlnet":
        # Its look-ups have the tokens first, and the library's own have the texts first.
        handle = able.core.register_forward_pre_hook(
            lambda _m, _args, kwargs: rows.append(kwargs["input_ids"].shape[0]), with_kwargs=True
        )
    else:
        handle = able.embedding_table.register_forward_hook(lambda _m, args, _o: rows.append(args[0].shape[0]))
    try:
        explanation = raison.explain(able, texts[0], method, of="logit")
    finally:
        handle.remove()
    # Beside the method's own: the whole and the empty text, embeddings looked up for a path's two ends, and one row
    # with its backward pass to find where an encoder predicts from.
    assert sum(rows) <= explanation.evaluations + 6
    # A causal model runs many sequences as one row, and a partial pass starts above the table.
    unseen = able.readout is not None or Property.PARTIAL in method.properties
    assert unseen or explanation.evaluations <= sum(rows)


def check_completeness(method: Method, explanation: Explanation) -> None:
    """Scores sum to what the text's removal takes away, where the method claims it."""
    if Property.COMPLETE not in method.properties:
        return
    span = abs(explanation.value_full - explanation.value_empty)
    allowed = explanation.notes.get("completeness_gap")
    if allowed is not None:
        assert explanation.completeness_gap == pytest.approx(allowed, abs=1e-3)
    else:
        assert abs(explanation.completeness_gap) < 1e-4 * max(1.0, span)


@pytest.fixture
def half(request: pytest.FixtureRequest, able: Classifier) -> Iterator[Classifier]:
    """The same model in fewer bits: see tests/reused.py."""
    family = request.node.callspec.params.get("tiny", "answering")
    yield from reused(
        request, ("half", family), lambda: raison.load(copy.deepcopy(able.model).to(torch.bfloat16), able.tokenizer)
    )


def test_bfloat16_models_are_explained_too(half: Classifier, method: Method, brief: list[str]) -> None:
    for explanation in raison.explain(half, brief, method, of="logit"):
        assert np.isfinite(explanation.scores).all()


def test_out_of_memory_changes_no_score(able: Classifier, method: Method) -> None:
    """Layers that take two rows at most: a text and its baseline, or two points of a path."""
    expected = raison.explain(able, SHORT_TEXTS, method, of="logit", seed=3)
    failed: list[int] = []

    def limited(_layer: nn.Module, args: tuple[Tensor, ...], kwargs: dict[str, Tensor]) -> None:
        rows = len(args[0] if args else kwargs.get("hidden_states", kwargs.get("input_ids")))
        if rows > 2:
            failed.append(rows)
            raise torch.OutOfMemoryError("no room")

    # Of a model whose attention cannot be read, the whole pass.
    readable = able.offers(BackwardRules)
    parts = set(layer_stack(able.core)) if readable else {able.core.base_model}
    hooks = [part.register_forward_pre_hook(limited, with_kwargs=True) for part in parts]
    try:
        found = raison.explain(able, SHORT_TEXTS, method, of="logit", seed=3)
    finally:
        for hook in hooks:
            hook.remove()
    # A causal model's sequences may all be one row, and XLNet's run with those of equal length.
    assert failed or able.readout is not None or able.core.config.model_type == "xlnet"
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.scores, other.scores, **CLOSE)


def test_signed_methods_change_sign_with_the_target(able: Classifier, method: Method, texts: list[str]) -> None:
    if Property.SIGNED not in method.properties or Property.RANDOM in method.properties:
        pytest.skip("unsigned or random")
    for_it, against_it = (
        raison.explain(able, texts[0], method, target=pair, of="logit")
        for pair in (("negative", "positive"), ("positive", "negative"))
    )
    np.testing.assert_allclose(np.array(for_it.scores), -np.array(against_it.scores), **CLOSE)


def test_reference_is_in_the_bibliography(method: Method) -> None:
    bibliography = Path(__file__).parents[2].joinpath("docs/references.bib").read_text(encoding="utf-8")
    assert f"{{{method.reference}," in bibliography


def test_no_score_is_below_zero_unless_the_method_is_signed(able: Classifier, method: Method, texts: list[str]) -> None:
    assert_signs(able, method, texts)


@pytest.mark.parametrize("call", SIGN_BY_SETTING)
def test_settings_decide_the_sign(call: str) -> None:
    model, tokenizer = TINY["bert"]()
    assert_signs(raison.load(model, tokenizer), CATALOGUE.create(call), TEXTS)


def assert_signs(model: LanguageModel, method: Method, texts: list[str]) -> None:
    """What a method says of its signs is what its explanations say, and what their scores are."""
    found = [e for target in model.classes[1:] for e in raison.explain(model, texts, method, target=target, of="logit")]
    assert {e.signed for e in found} == {method.signed}
    lowest = min(score for e in found for score in e.scores)
    assert lowest < 0 if method.signed else lowest >= 0


def test_a_statement_has_the_value_that_the_method_explains(method: Method) -> None:
    assert method.statement_value in get_args(Of)


def test_a_method_is_not_signed_and_unsigned(method: Method) -> None:
    assert not {Property.SIGNED, Property.UNSIGNED} <= method.properties
    assert method.signed or Property.SIGNED not in method.properties
