"""The contract of a function of texts: every method and metric that needs only answers works on it, others refuse."""

import numpy as np
import pytest

import raison
from raison.core.errors import UnsupportedError
from raison.core.inputs.rationale import Span
from raison.core.method import Method, Property
from raison.core.metric import GroupMetric, Need
from raison.core.model import LanguageModel
from raison.core.registry import label_of, name_of
from raison.core.results.explanation import Explanation
from raison.explaining.attribution import unfit
from raison.explaining.measuring import AnyMetric
from raison.methods import CATALOGUE as METHODS
from raison.metrics import CATALOGUE as METRICS
from raison.text.segment import word_spans
from tests.functions import CLASSES, TEXTS, WEIGHTS, labels, rating, shares

SHORTER = {
    "reagent": "reagent(runs=2, max_steps=6)",
    "solvex": "solvex(beam=1)",
    "shapley_sampling": "shapley_sampling(samples=48)",
}
EXACT = ("occlusion", "kernel_shap", "partition_shap", "shapley_exact", "shapley_sampling")
"""Methods whose scores of a sum are its terms."""


def classifier() -> LanguageModel:
    return raison.load(shares, classes=CLASSES)


def scorer() -> LanguageModel:
    return raison.load(rating, classes=["rating"])


def terms(text: str) -> list[float]:
    return [WEIGHTS.get(text[start:end].lower(), 0.0) for start, end in word_spans(text)]


def refusal_of(model: LanguageModel, method: Method) -> UnsupportedError | None:
    """Why a method does not work; what it says has to name methods that do."""
    if not method.lacking(model):
        try:
            method.check(model)
        except UnsupportedError as error:
            return error
        return None
    with pytest.raises(UnsupportedError) as caught:
        raison.explain(model, TEXTS[0], method)
    return caught.value


def scores_or_refusal(
    model: LanguageModel, explanations: list[Explanation], metric: AnyMetric
) -> tuple[float, ...] | UnsupportedError:
    """The values of a metric, or why it has none."""
    rationales = [((Span(e.units[0].start, e.units[0].end),),) for e in explanations]
    try:
        return raison.evaluate(model, explanations, [metric], rationales=rationales)[label_of(metric)].values
    except UnsupportedError as error:
        return error


@pytest.fixture(params=METHODS.names)
def method(request: pytest.FixtureRequest) -> Method:
    return METHODS.create(SHORTER.get(request.param, request.param))


@pytest.fixture(params=[classifier, scorer], ids=["classes", "number"])
def model(request: pytest.FixtureRequest) -> LanguageModel:
    found: LanguageModel = request.param()
    return found


def test_every_method_works_or_says_why_not(model: LanguageModel, method: Method) -> None:
    refusal = refusal_of(model, method)
    if refusal is not None:
        assert "\n" not in str(refusal)
        assert any(why in str(refusal) for why in ("function", "'classes'", "answer questions")), refusal
        return
    explanations = raison.explain(model, list(TEXTS), method)
    for explanation, text in zip(explanations, TEXTS, strict=True):
        assert explanation.text == text
        assert len(explanation.scores) == len(explanation.units) == len(word_spans(text))
        assert np.isfinite(explanation.scores).all()
        assert explanation.evaluations <= method.cost(len(explanation.units)).forwards
        assert explanation.gradients == 0
        assert explanation.removal == "delete"
        assert Explanation.from_json(explanation.to_json()) == explanation
        if Property.COMPLETE in method.properties:
            assert sum(explanation.scores) == pytest.approx(explanation.value_full - explanation.value_empty)
    again = raison.explain(model, list(TEXTS), method)
    assert [one.scores for one in again] == [one.scores for one in explanations]
    (alone,) = raison.explain(model, [TEXTS[0]], method)
    np.testing.assert_allclose(alone.scores, explanations[0].scores, atol=1e-5)


def test_every_method_takes_parts_as_it_takes_words(model: LanguageModel, method: Method) -> None:
    if refusal_of(model, method) is not None:
        pytest.skip("the method does not work on functions")
    words = raison.explain(model, list(TEXTS), method, seed=3)
    parts = raison.explain(model, list(TEXTS), method, seed=3, units=[word_spans(text) for text in TEXTS])
    for word, part in zip(words, parts, strict=True):
        assert (part.unit, part.units) == ("part", word.units)
        np.testing.assert_allclose(part.scores, word.scores, atol=1e-9)


def test_what_needs_answers_alone_is_not_refused() -> None:
    able = {name for name in METHODS.names if refusal_of(classifier(), METHODS.create(name)) is None}
    assert able >= {*EXACT, "lime", "random", "reagent", "solvex"}
    assert able == {name for name in METHODS.names if not METHODS.get(name).needs and name in able}


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("removal", ["delete", "ellipsis", "[MASK]"])
@pytest.mark.parametrize("text", TEXTS)
def test_the_terms_of_a_sum_are_found(name: str, removal: str, text: str) -> None:
    call = SHORTER.get(name, name)
    number = raison.explain(scorer(), text, call, removal=removal)
    np.testing.assert_allclose(number.scores, terms(text), atol=1e-9)
    assert (number.value_full, number.value_empty) == pytest.approx((sum(terms(text)), 0.0))
    odds = raison.explain(classifier(), text, call, of="log_odds", target="positive", removal=removal)
    np.testing.assert_allclose(odds.scores, terms(text), atol=1e-9)
    model = raison.load(labels, classes=["once", "twice"], multi_label=True)
    for target, times in (("once", 1), ("twice", 2)):
        found = raison.explain(model, text, call, of="logit", target=target, removal=removal)
        np.testing.assert_allclose(found.scores, np.multiply(times, terms(text)), atol=1e-9)


def test_sentences() -> None:
    text = "It is good. It is not bad! The film?"
    found = raison.explain(scorer(), text, "shapley_exact", unit="sentence")
    np.testing.assert_allclose(found.scores, [1.0, -1.0, 0.25], atol=1e-9)


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("removal", ["delete", "[MASK]"])
def test_parts_and_the_context_between_them(name: str, removal: str) -> None:
    text, parts = "good: A quiet film is not bad!", {"subject": (8, 18), "verdict": (22, 29)}
    found = raison.explain(scorer(), text, SHORTER.get(name, name), units=parts, removal=removal)
    assert [(unit.name, unit.text) for unit in found.units] == [("subject", "quiet film"), ("verdict", "not bad")]
    np.testing.assert_allclose(found.scores, [0.375, -1.75], atol=1e-9)
    # "good" and "!" are context.
    assert (found.value_full, found.value_empty) == pytest.approx((0.375, 1.75))


def test_a_part_inside_a_word() -> None:
    model = raison.load(
        lambda texts: [[2.0 * ("un" in text) + ("happy" in text)] for text in texts], classes=["rating"]
    )
    found = raison.explain(model, "so unhappy", "shapley_exact", units={"negation": (3, 5), "stem": (5, 10)})
    np.testing.assert_allclose(found.scores, [2.0, 1.0], atol=1e-9)
    assert "extended" not in found.notes


def test_margins_and_pairs_of_classes_are_differences_of_log_probabilities() -> None:
    for asked in (
        {"of": "margin", "target": "positive"},
        {"of": "log_probability", "target": ("positive", "negative")},
    ):
        found = raison.explain(classifier(), TEXTS[0], "occlusion", **asked)
        np.testing.assert_allclose(found.scores, terms(TEXTS[0]), atol=1e-9)


QUICKER = {"simulatability": "simulatability(student='tiny', epochs=1)"}
"""Metrics whose defaults teach for long."""


@pytest.mark.parametrize("unit", ["word", "part"])
@pytest.mark.parametrize("name", METRICS.names)
def test_every_metric_works_or_says_why_not(model: LanguageModel, name: str, unit: str) -> None:
    metric = METRICS.create(QUICKER.get(name, name))
    texts = [f"{text} {number}" for text in TEXTS for number in range(4)]
    # The number is context.
    units = [word_spans(text)[:-1] for text in texts] if unit == "part" else None
    found = scores_or_refusal(model, raison.explain(model, texts, "occlusion", units=units), metric)
    if isinstance(found, UnsupportedError):
        assert "\n" not in str(found)
        lacking = {Need.EMBEDDINGS, Need.CLASSES, Need.PROBABILITIES} & metric.needs
        assert lacking or isinstance(metric, GroupMetric)
        assert "function" in str(found) or "number" in str(found)
    else:
        assert len(found) == len(texts) or isinstance(metric, GroupMetric)


def test_comprehensiveness_is_what_deleting_the_top_words_takes() -> None:
    (explanation,) = raison.explain(scorer(), ["good film ! bad not a b c d e"], "occlusion")
    found = raison.evaluate(scorer(), [explanation], ["comprehensiveness(share=0.3)"])
    # Three of ten words: "good", "!" and "film".
    assert found["comprehensiveness(share=0.3)"].values[0] == pytest.approx(2.0)


def test_names_of_methods_in_a_refusal_work() -> None:
    with pytest.raises(UnsupportedError, match="of which only the outputs are known") as caught:
        raison.explain(classifier(), TEXTS[0], "integrated_gradients")
    named = str(caught.value).rpartition("These methods work: ")[2].strip(".").split(", ")
    assert "kernel_shap" in named
    assert not any(unfit(classifier(), METHODS.create(name)) for name in named)
    assert not {"ensemble", "self_explanation", "aml"} & set(named)
    assert name_of(METHODS.create("integrated_gradients")) not in named
