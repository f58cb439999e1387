"""auto takes what its rule says, written out again here, and gives what the chosen method gives alone."""

import json
from pathlib import Path

import pytest

import raison
from raison.core.errors import InputError, UnsupportedError
from raison.core.method import Rngs
from raison.core.model import LanguageModel
from raison.core.problem import Problem
from raison.core.registry import label_of
from raison.core.results.explanation import Explanation
from raison.methods import CATALOGUE, Auto, DeepLift, auto
from tests.tiny import TINY, build_language_model
from tests.toys import Linear

RECORDS = json.loads(Path("src/raison/combining/evidence.json").read_text(encoding="utf-8"))
WORDS = "the plot is thin but the acting is a quiet pleasure and the end is good for all of us".split()
TEXTS = [" ".join(WORDS[:count]) for count in (15, 2, 9, 20, 6, 7, 14, 1)]
"""Short ones, long ones and some between, in no order."""


@pytest.fixture(scope="module")
def encoder() -> LanguageModel:
    return raison.load(*TINY["bert"]())


@pytest.fixture(scope="module")
def decoder() -> LanguageModel:
    return raison.load(*TINY["llama"]())


def literal(units: int, budget: int, encodes: bool) -> str:
    """The rule: exact values, one pass on an encoder, or samples."""
    if 2**units <= budget:
        return "shapley_exact"
    for known in RECORDS["cheap_methods"]:
        enough = units >= known["units"] and budget <= known["passes"]
        # Two passes forward and one back, which counts as two.
        assert known["method"] == "deep_lift"
        if encodes and enough and budget >= 2 + 2 * 1:
            return str(known["method"])
    few = RECORDS["few_passes"]
    if units / budget >= few["units"] / few["passes"]:
        return "coarse_to_fine" + ("" if budget == 100 else f"(samples={budget})")
    tabulated = [known for known in RECORDS["estimators"] if known["passes"] <= budget] or RECORDS["estimators"][:1]
    return f"kernel_shap(samples={budget}, " + str(tabulated[-1]["method"]).removeprefix("kernel_shap(")


def label(e: Explanation) -> str:
    return label_of(CATALOGUE.get(e.method)(**e.config))


@pytest.mark.parametrize("budget", [2, 12, 100, 300])
def test_takes_what_the_rule_says(encoder: LanguageModel, decoder: LanguageModel, budget: int) -> None:
    for model in (encoder, decoder, Linear()):
        found = raison.explain(model, TEXTS, budget=budget)
        for text, e in zip(TEXTS, found, strict=True):
            assert label(e) == literal(len(e.units), budget, model is encoder)
            assert e.text == text
            assert e.evaluations + 2 * e.gradients <= budget
            assert e.notes["auto"].startswith(f"{e.method}: ")


def test_every_way_is_taken(encoder: LanguageModel) -> None:
    assert {e.method for e in raison.explain(encoder, TEXTS)} == {"deep_lift", "kernel_shap", "shapley_exact"}


@pytest.mark.parametrize("unit", ["word", "token", "sentence"])
def test_scores_are_the_chosen_methods_own(encoder: LanguageModel, unit: str) -> None:
    for together in raison.explain(encoder, TEXTS, unit=unit, seed=5):
        alone = raison.explain(encoder, together.text, unit=unit, seed=5)
        named = raison.explain(encoder, together.text, label(together), unit=unit, seed=5)
        assert alone.method == named.method == together.method
        assert alone.scores == pytest.approx(together.scores, abs=1e-5)
        assert alone.scores == pytest.approx(named.scores, abs=1e-12)
        assert (alone.evaluations, alone.gradients) == (named.evaluations, named.gradients)
        assert {name: told for name, told in alone.notes.items() if name != "auto"} == named.notes
        assert alone.signed == named.signed
        assert Explanation.from_json(alone.to_json()) == alone


def test_records_of_words_and_tokens_say_nothing_of_parts(encoder: LanguageModel) -> None:
    spans = [(5 * place, 5 * place + 4) for place in range(16)]
    assert raison.explain(encoder, "good " * 16, units=spans).method == "kernel_shap"


def test_a_method_that_does_not_fit_the_model_makes_room_for_the_next(
    encoder: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    attribute = DeepLift.attribute

    def leaky(self: DeepLift, problem: Problem, rngs: Rngs) -> object:
        scores = attribute(self, problem, rngs)
        problem.note("completeness_gap", [float(scores.abs().sum())] * len(problem.encoding))
        return scores

    def refused(_self: DeepLift, _problem: Problem, _rngs: Rngs) -> object:
        raise UnsupportedError("no", ["no"])

    monkeypatch.setattr(DeepLift, "attribute", leaky)
    found = raison.explain(encoder, TEXTS[0])
    assert (found.method, found.evaluations, found.gradients) == ("kernel_shap", 2 + 100, 1)
    monkeypatch.setattr(DeepLift, "attribute", refused)
    assert raison.explain(encoder, TEXTS[0]).method == "kernel_shap"


@pytest.mark.parametrize(
    ("advice", "why"),
    [
        ("aml", "was left out: "),
        ("sp_pi", "which an audit recommended, was left out: the model lacks"),
        ("lime(samples=200)", "was left out: 9 units would take 200 passes, and the budget is 100"),
        ("ensemble(methods=('lime', 'occlusion'))", "was left out: its settings name a file or another method"),
    ],
)
def test_advice_that_is_not_taken_is_told_with_the_reason(
    encoder: LanguageModel, monkeypatch: pytest.MonkeyPatch, advice: str, why: str
) -> None:
    monkeypatch.setattr(auto, "advised", lambda _model: advice)
    found = raison.explain(encoder, TEXTS[2])
    assert found.method == "kernel_shap"
    assert f"; {advice}, which an audit recommended, was left out: " in found.notes["auto"]
    assert why in found.notes["auto"]
    monkeypatch.setattr(auto, "advised", lambda _model: "occlusion")
    taken = raison.explain(encoder, TEXTS[2])
    assert taken.notes["auto"] == "occlusion: an audit of this model recommended it"


def test_what_a_model_writes_is_explained_by_samples() -> None:
    writer = raison.load(*build_language_model("llama"))
    short, long = raison.explain(writer, ["a dull plot", TEXTS[3]], max_new_tokens=2)
    assert (short.method, long.method) == ("shapley_exact", "kernel_shap")
    assert long.config["samples"] == 100
    assert long.notes["auto"].startswith("kernel_shap: ")


def test_a_budget_is_one_of_passes() -> None:
    assert raison.explain(Linear(), "good film", budget=4).method == "shapley_exact"
    assert raison.explain(Linear(), "good film", Auto(budget=3)).method == "kernel_shap"
    with pytest.raises(InputError, match="budget of auto cannot be 1: give a whole number of at least 2"):
        raison.explain(Linear(), "good film", budget=1)
    with pytest.raises(InputError, match="budget= is for method='auto'"):
        raison.explain(Linear(), "good film", "lime", budget=50)


def test_a_row_of_a_comparison_has_its_own_cost(encoder: LanguageModel) -> None:
    table = raison.compare(encoder, TEXTS[:3], ["auto", "occlusion"], "comprehensiveness")
    auto = next(row for row in table.rows if row.method == "auto")
    assert auto.evaluations.mean == pytest.approx((2 + 4 + 100) / 3)
    explained = raison.explain(encoder, TEXTS[:3])
    scores = raison.evaluate(encoder, explained, "comprehensiveness")
    assert scores.method == "auto"
    assert scores["comprehensiveness"].values == pytest.approx(auto["comprehensiveness"].values, abs=1e-5)
