"""The contract of upper bounds: no result states more passes than were announced, and a server keeps to its limit."""

import json
import re
from dataclasses import dataclass
from typing import Any

import pytest

import raison
from raison.core.errors import InputError, RaisonError
from raison.core.results.citations import Citations
from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation
from raison.explaining.explain import explain
from raison.explaining.settings import Settings
from raison.judging.citing import estimate_cite
from raison.judging.estimate import estimate
from raison.methods import CATALOGUE, auto
from raison.metrics import CATALOGUE as METRICS
from raison.web.server.bodies import CiteBody, ExplainBody
from raison.web.server.calls import ExplanationRequest, ModelRequest
from raison.web.server.citing import CitationsRequest
from raison.web.server.settings import Limits
from tests.tiny import build, build_language_model

MANY = Limits(passes=10**9)
"""Limits under which every request of these tests is answered."""
SHORTER = {
    "discretized_integrated_gradients": "discretized_integrated_gradients(steps=2)",
    "ensemble": "ensemble(methods=('value_zeroing', 'saliency', 'occlusion'))",
    "gradient_shap": "gradient_shap(samples=3)",
    "integrated_gradients": "integrated_gradients(steps=4)",
    "lime": "lime(samples=16)",
    "reagent": "reagent(runs=2, max_steps=6)",
    "resampled": "resampled(method='integrated_gradients(steps=2)', baselines=2)",
    "rpi": "rpi(baselines=2, steps=2)",
    "rpi_g": "rpi_g(baselines=2, steps=2)",
    "sequential_integrated_gradients": "sequential_integrated_gradients(steps=2)",
    "smooth_grad": "smooth_grad(samples=3)",
    "solvex": "solvex(beam=1)",
}
"""Calls with fewer passes than the methods' defaults."""
CALLS = tuple(SHORTER.get(name, name) for name in CATALOGUE.names)
LONG = "a dull plot , but the acting is good and the end is a quiet pleasure"
"""So many words that auto first tries a method that may not fit."""
WRITER = raison.load(*build_language_model("llama"))
MODELS = {
    "classes": raison.load(*build("bert")),
    "labels": raison.load(*build("bert", ("anger", "joy", "love", "fear"), "multi_label_classification")),
    "writer": WRITER,
}
SOURCES = {
    "sea": "a sailor told it. it was quiet.",
    "plot": "a dull plot.",
}
QUESTION, ANSWER = "who told it?", "the sailor. a dull one."


@dataclass(frozen=True)
class Stated:
    """The passes that a result states."""

    evaluations: int
    gradients: int

    @classmethod
    def of(cls, found: Any) -> "Stated":
        """From the JSON of an answer, or of several."""
        if isinstance(found, list):
            each = [cls.of(one) for one in found]
            return cls(sum(one.evaluations for one in each), sum(one.gradients for one in each))
        kind = Citations if "sources" in found else GenerationExplanation if "prompt" in found else Explanation
        result = kind.from_dict(found)
        return cls(result.evaluations, result.gradients)


ASKED = {
    "a text": {"model": "classes", "text": LONG},
    "each label": {"model": "labels", "text": "a dull plot", "target": "each", "threshold": 0.3},
    "an output": {"model": "writer", "text": "a dull plot", "output": " was quiet and the end"},
    "an output of the model's own": {"model": "writer", "text": "a dull plot", "max_new_tokens": 3},
    "an output with its earlier tokens": {"model": "writer", "text": "a dull", "max_new_tokens": 4, "earlier": True},
    "citations": {"answer": ANSWER, "draws": 2},
    "citations of whole sources": {"answer": ANSWER, "draws": 0, "within": "source"},
    "citations of the model's own answer": {"max_new_tokens": 6, "draws": 0, "within": "source"},
}


@dataclass(frozen=True)
class Answered:
    """A model, a request for it, and the passes that its answer states."""

    model: Any
    request: ModelRequest
    stated: Stated


def answered(asked: dict[str, Any], call: str) -> Answered:
    """Skips a method that cannot do this at all."""
    try:
        if "text" in asked:
            model = MODELS[asked["model"]]
            one: ModelRequest = ExplanationRequest.read(ExplainBody(**asked, method=call), MANY)
        else:
            model = WRITER
            body = CiteBody(model="writer", question=QUESTION, sources=SOURCES, template="plain", method=call, **asked)
            one = CitationsRequest.read(body, MANY)
        [answer] = one.run(model, [one])
    except RaisonError as error:
        pytest.skip(str(error))
    return Answered(model, one, Stated.of(json.loads(answer)))


def bound_of(one: Answered) -> int:
    """The smallest limit that lets a request through, which is the bound that a refusal states."""
    refusal = ""
    try:
        one.request.check(one.model, Limits(passes=0))
    except InputError as error:
        refusal = str(error)
    told = re.fullmatch(r".+ needs up to ([\d,]+) passes for .+, and this server allows 0: take .+\.", refusal)
    assert told or not refusal, refusal
    return int(told[1].replace(",", "")) if told else 0


def keeps_to_its_limit(one: Answered) -> None:
    """One pass fewer is refused, and what the answer states is within the limit."""
    bound = bound_of(one)
    one.request.check(one.model, Limits(passes=bound))
    if bound:
        with pytest.raises(InputError, match=f"allows {bound - 1:,}: "):
            one.request.check(one.model, Limits(passes=bound - 1))
    assert one.stated.evaluations + one.stated.gradients <= bound


@pytest.mark.in_turn(len(ASKED))
@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("call", CALLS)
def test_a_server_answers_nothing_that_takes_more_passes_than_it_allows(call: str, asked: dict[str, Any]) -> None:
    keeps_to_its_limit(answered(asked, call))


@pytest.mark.parametrize("call", ["random(draws=3)", SHORTER["rpi"]])
@pytest.mark.parametrize("metric", ["sufficiency", "aopc_comprehensiveness", "insertion_auc", "log_odds"])
def test_the_choice_among_maps_is_within_the_limit_too(metric: str, call: str) -> None:
    one = answered({"model": "classes", "text": "a dull plot at the end", "select": metric}, call)
    keeps_to_its_limit(one)
    assert one.stated.evaluations > CATALOGUE.create(call).total_cost(6).forwards


@pytest.mark.parametrize("metric", METRICS.names)
def test_a_metric_that_cannot_choose_is_refused_in_one_line(metric: str) -> None:
    """By the check before the request, or by what it does: never as a mistake of the server."""
    body = ExplainBody(model="classes", text="a dull plot", select=metric, method="random(draws=3)")
    one = ExplanationRequest.read(body, MANY)
    told: list[str] = []
    try:
        one.check(MODELS["classes"], MANY)
        one.run(MODELS["classes"], [one])
    except RaisonError as error:
        told.append(str(error))
    assert not any("\n" in line for line in told)


def test_advice_does_not_make_auto_exceed_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """The advised method takes a pass for every token, of which a word may have many."""
    monkeypatch.setattr(auto, "advised", lambda _model: "value_zeroing")
    text = "unbelievably incomprehensible plots"
    for budget in (4, 12, 200):
        keeps_to_its_limit(answered({"model": "classes", "text": text}, f"auto(budget={budget})"))


@pytest.mark.parametrize("within", ["sentence", "source"])
@pytest.mark.parametrize("call", CALLS)
def test_an_estimate_of_citing_is_never_exceeded(call: str, within: str) -> None:
    options = {"answer": ANSWER, "template": "plain", "method": call, "within": within, "draws": 1}
    try:
        cited = raison.cite(WRITER, QUESTION, SOURCES, **options)
    except RaisonError as error:
        pytest.skip(str(error))
    told = estimate_cite(WRITER, QUESTION, SOURCES, **options)
    assert cited.evaluations <= told.passes
    assert cited.gradients <= told.backwards


@pytest.mark.parametrize("call", CALLS)
def test_an_estimate_of_a_text_is_never_exceeded(call: str) -> None:
    model = MODELS["classes"]
    # All subsets of its words: 8 are enough.
    text = " ".join(LONG.split()[:8]) if call.startswith("shapley_exact") else LONG
    try:
        explained = explain(model, text, call, progress=False)
    except RaisonError as error:
        pytest.skip(str(error))
    told = estimate(model, [text], call, "gini")
    [label, *_] = told.forwards
    assert explained.evaluations <= told.forwards[label]
    if not call.startswith("auto"):
        assert explained.gradients <= told.backwards[label]


THRESHOLD = 0.3


@pytest.mark.parametrize(
    "call", ["occlusion", "saliency", "integrated_gradients(steps=4)", "value_zeroing", "partition_shap", "random"]
)
def test_an_estimate_of_each_label_is_never_exceeded(call: str) -> None:
    model, texts = MODELS["labels"], ["a dull plot", "the end is good", "dull"]
    told = estimate(model, texts, call, "sufficiency", Settings(target="each"), threshold=THRESHOLD)
    compared = raison.compare(model, texts, call, "sufficiency", target="each", threshold=THRESHOLD, progress=False)
    assert told.texts == compared.texts > len(texts)
    for row in compared.rows:
        assert compared.texts * row.evaluations.mean <= told.forwards[row.method] + 1e-6
        assert compared.texts * row.gradients.mean <= told.backwards[row.method] + 1e-6
