"""Perturbed texts in bfloat16: what is evaluated in it and what is not, what is said about it, and what stays."""

import copy
import gc
import weakref
from collections.abc import Callable

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import raison
from raison.cli import app
from raison.core.capabilities.embeddings import Shift
from raison.core.capabilities.reduced_precision import ReducedPrecision
from raison.core.errors import UnknownNameError, UnsupportedError
from raison.core.problem import Evaluations
from raison.core.results.explanation import Explanation
from raison.explaining.attribution import run, shifted_scores
from raison.explaining.batch import prepare
from raison.explaining.settings import Settings
from raison.methods import CATALOGUE
from raison.models.adapters.classifier import Classifier
from raison.models.passes.precision import CHECKED_LEAST, CHECKED_SHARE
from raison.numerics.measures.agreement import spearman
from tests.tiny import ANSWERING, LANGUAGE_MODELS, QUESTIONS, TINY, UNLIKE, build_answering, build_language_model
from tests.toys import Linear

TEXTS = [
    "the film is not a quiet pleasure , it is a loud one",
    "dull",
    "a dull plot , but the acting is good and the end is good",
]
SHAP = "kernel_shap(samples=100)"


def tiny(name: str) -> Classifier:
    loaded = raison.load(*TINY[name]())
    assert isinstance(loaded, Classifier)
    return loaded


def weights(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


@pytest.mark.parametrize("name", UNLIKE)
def test_scores_are_close_and_the_agreement_is_part_of_the_provenance(name: str) -> None:
    model = tiny(name)
    before = weights(model.model)
    single = raison.explain(model, TEXTS, SHAP, of="logit")
    half = raison.explain(model, TEXTS, SHAP, of="logit", precision="bfloat16")
    for one, other in zip(single, half, strict=True):
        # The two ends are the model's own in both.
        assert other.value_full == pytest.approx(one.value_full, abs=1e-5)
        assert other.value_empty == pytest.approx(one.value_empty, abs=1e-5)
        assert other.probabilities == one.probabilities
        assert other.completeness_gap == pytest.approx(0, abs=1e-6)
        span = max(map(abs, one.scores))
        np.testing.assert_allclose(other.scores, one.scores, atol=0.15 * span)
    assert "precision" not in single[0].notes
    found = half[0].notes["precision"]
    assert found["evaluations"] == "bfloat16"
    assert 0.8 < found["rank_correlation"] <= 1
    # One unit: the whole and the empty text are all that there is, and nothing was evaluated in 16 bits.
    assert half[1].notes["precision"] == {"evaluations": "bfloat16", "rank_correlation": None, "checked": 0}
    assert half[0].scores != single[0].scores
    after = model.model.state_dict()
    assert all(torch.equal(tensor, after[key]) for key, tensor in before.items())
    assert model.core.dtype is torch.float32
    assert Explanation.from_json(half[0].to_json()) == half[0]


def test_the_reported_correlation_is_that_of_values_evaluated_in_both_precisions() -> None:
    """Against a method that evaluates the same keeps in single precision, without the library's own sample."""
    model = tiny("bert")
    text = "a dull plot"
    # 2^3 keeps, of which six are perturbed: at least five are checked, so that one is left out.
    batches = [
        prepare(model, [text], Settings(of="logit", precision=precision)) for precision in ("float32", "bfloat16")
    ]
    (single,), (half,) = (run(batch, CATALOGUE.create("kernel_shap")) for batch in batches)
    perturbed = sorted(batches[1].evaluations.reduced)
    assert len(perturbed) == 6
    target = batches[0].target
    tables = [batches[0].evaluations.logits, batches[1].evaluations.reduced]
    columns = [target.row(0, 6).scalar(torch.stack([table[key] for key in perturbed]).double()) for table in tables]
    subsets = [[i for i in range(6) if i != left_out] for left_out in range(6)]
    possible = [spearman(columns[1][subset].numpy(), columns[0][subset].numpy()) for subset in subsets]
    assert half.notes["precision"]["checked"] == CHECKED_LEAST
    assert any(half.notes["precision"]["rank_correlation"] == pytest.approx(rho, abs=1e-9) for rho in possible)
    assert half.evaluations == single.evaluations + CHECKED_LEAST


def test_what_the_check_takes_is_a_share_and_counted() -> None:
    model = tiny("bert")
    single, half = (
        raison.explain(model, TEXTS[0], "kernel_shap(samples=502)", precision=precision)
        for precision in ("float32", "bfloat16")
    )
    assert half.notes["precision"]["checked"] == CHECKED_SHARE * 500
    assert half.evaluations == single.evaluations + half.notes["precision"]["checked"]


def test_text_and_batch_stay_independent_and_seeds_repeat() -> None:
    model = tiny("distilbert")
    together = raison.explain(model, TEXTS, SHAP, precision="bfloat16", of="logit")
    again = raison.explain(model, TEXTS, SHAP, precision="bfloat16", of="logit")
    assert [e.scores for e in together] == [e.scores for e in again]
    assert [e.notes for e in together] == [e.notes for e in again]
    alone = raison.explain(model, TEXTS[2], SHAP, precision="bfloat16", of="logit")
    # A batch of another width may round 16 bits in another way.
    span = max(map(abs, alone.scores))
    np.testing.assert_allclose(together[2].scores, alone.scores, atol=0.05 * span)
    assert together[2].notes["precision"]["checked"] == alone.notes["precision"]["checked"]


@pytest.mark.parametrize("method", ["integrated_gradients", "saliency", "attention_rollout", "random"])
def test_gradients_and_attention_keep_the_models_own_precision(method: str) -> None:
    model = tiny("bert")
    single, half = (raison.explain(model, TEXTS, method, precision=kind) for kind in ("float32", "bfloat16"))
    assert [e.scores for e in single] == [e.scores for e in half]
    assert all("precision" not in e.notes for e in half)


def test_only_the_twin_has_weights_of_16_bits_and_its_head_has_not() -> None:
    model = tiny("bert")
    twin = model.ask(ReducedPrecision).reduced()
    assert isinstance(twin, Classifier)
    assert {p.dtype for p in twin.core.base_model.parameters()} == {torch.bfloat16}
    assert twin.core.classifier.weight is model.core.classifier.weight
    assert not model.core.classifier._forward_pre_hooks
    assert {p.dtype for p in model.model.parameters()} == {torch.float32}
    assert model.ask(ReducedPrecision).reduced() is twin


def test_the_twin_follows_the_model() -> None:
    model = tiny("bert")
    first = raison.explain(model, TEXTS[0], SHAP, precision="bfloat16", of="logit")
    with torch.no_grad():
        for parameter in model.model.parameters():
            parameter.mul_(0.9)
    fresh = raison.load(copy.deepcopy(model.model), model.tokenizer)
    changed = raison.explain(model, TEXTS[0], SHAP, precision="bfloat16", of="logit")
    assert changed.scores == raison.explain(fresh, TEXTS[0], SHAP, precision="bfloat16", of="logit").scores
    assert changed.scores != first.scores


def test_the_twin_goes_with_the_adapter() -> None:
    model = tiny("bert")
    gone = weakref.ref(model.ask(ReducedPrecision).reduced().model)
    del model
    gc.collect()
    assert gone() is None


def test_a_model_of_16_bits_is_its_own_twin() -> None:
    model, tokenizer = TINY["bert"]()
    half = raison.load(model.to(torch.bfloat16), tokenizer)
    assert half.ask(ReducedPrecision).reduced() is half


def test_label_words_after_a_prompt() -> None:
    for name in LANGUAGE_MODELS:
        prompt = raison.Prompt(name="film", shot="{text} :{label}", labels={"a": " dull", "b": " loved"})
        model = raison.load(*build_language_model(name), prompt=prompt)
        single, half = (
            raison.explain(model, TEXTS[0], SHAP, precision=kind, of="logit") for kind in ("float32", "bfloat16")
        )
        assert half.notes["precision"]["rank_correlation"] > 0.8
        np.testing.assert_allclose(half.scores, single.scores, atol=0.2 * max(map(abs, single.scores)))


def test_outputs_of_a_language_model() -> None:
    generator = raison.load(*build_language_model("llama"))
    whole = raison.explain(generator, TEXTS[0], "occlusion", output=" the end", precision="bfloat16")
    assert all(token.notes["precision"]["evaluations"] == "bfloat16" for token in whole.tokens)


@pytest.mark.parametrize("name", ANSWERING)
def test_answers_to_questions(name: str) -> None:
    model = raison.load(*build_answering(name))
    found = raison.explain(model, QUESTIONS[0], "occlusion", precision="bfloat16")
    assert found.notes["precision"]["checked"] >= CHECKED_LEAST


def test_metrics_keep_the_models_own_precision() -> None:
    """Otherwise explanations in 16 bits would be judged by another model than others."""
    model = tiny("bert")
    metrics = ["comprehensiveness", "sufficiency"]
    table = raison.compare(model, TEXTS, ["occlusion"], metrics, precision="bfloat16", progress=False)
    explained = raison.explain(model, TEXTS, "occlusion", precision="bfloat16", progress=False)
    scores = raison.evaluate(model, explained, metrics, progress=False)
    for metric in metrics:
        np.testing.assert_allclose(table["occlusion"][metric].values, scores[metric].values, atol=1e-6)
    assert table.settings["precision"] == "bfloat16"
    assert "precision" not in raison.compare(model, TEXTS, ["random"], metrics, progress=False).settings


def prompted(name: str) -> Classifier:
    prompt = raison.Prompt(
        name="film",
        shot="the plot of the film is told once more : {text} :{label}",
        labels={"a": " dull", "b": " loved"},
    )
    model = raison.load(*build_language_model(name), prompt=prompt)
    assert isinstance(model, Classifier)
    return model


@pytest.mark.parametrize(
    "make", [lambda: tiny("bert"), lambda: tiny("gpt2"), lambda: tiny("t5"), lambda: prompted("llama")]
)
def test_shifted_embeddings_move_the_twin_too(make: Callable[[], Classifier]) -> None:
    model, shift, method = make(), Shift(radius=1.0, draw=0), CATALOGUE.create("occlusion")
    batches = [prepare(model, TEXTS[:1], Settings(of="logit", precision=kind)) for kind in ("float32", "bfloat16")]
    plain = np.array(run(batches[1], method)[0].scores)
    single, half = (shifted_scores(batch, method, shift, Evaluations())[0] for batch in batches)
    span = np.abs(single).max()
    np.testing.assert_allclose(half, single, atol=0.15 * span)
    # A twin that stood still would give what it gave before.
    assert np.abs(half - plain).max() > 0.3 * span
    assert np.array_equal(np.array(run(batches[1], method)[0].scores), plain)


def test_unknown_precision_and_models_without_a_twin() -> None:
    model = tiny("bert")
    with pytest.raises(UnknownNameError, match="Did you mean 'bfloat16'"):
        raison.explain(model, TEXTS[0], precision="bfloat")
    with pytest.raises(UnknownNameError, match="unknown precision 'float16'"):
        raison.compare(model, TEXTS, precision="float16")
    with pytest.raises(UnsupportedError, match="cannot be evaluated in bfloat16"):
        raison.explain(Linear(), "good film", "occlusion", precision="bfloat16")


def test_the_command_line_names_the_precisions() -> None:
    found = CliRunner().invoke(app, ["explain", "a text", "--precision", "bf16"])
    assert isinstance(found.exception, UnknownNameError)
    assert "bfloat16" in str(found.exception)


def test_of_a_model_of_16_bits_nothing_is_said() -> None:
    net, tokenizer = TINY["bert"]()
    model = raison.load(net.to(torch.bfloat16), tokenizer)
    own, half = (raison.explain(model, TEXTS[0], SHAP, precision=precision) for precision in ("float32", "bfloat16"))
    assert "precision" not in half.notes
    assert half.scores == own.scores
    assert half.evaluations == own.evaluations


def test_what_a_member_of_an_ensemble_was_checked_for_alone_is_not_the_ensembles() -> None:
    model, settings = tiny("bert"), Settings(precision="bfloat16")
    member, ensemble = (CATALOGUE.create(name) for name in (SHAP, f"ensemble(methods=['{SHAP}', 'occlusion'])"))
    alone = run(prepare(model, TEXTS[:1], settings), ensemble)
    batch = prepare(model, TEXTS[:1], settings)
    run(batch, member)
    assert run(batch, ensemble)[0].evaluations == alone[0].evaluations
