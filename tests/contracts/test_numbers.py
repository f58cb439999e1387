"""Models with one output: the number itself is explained, by every method and on every family that can."""

import copy
import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Group

import raison
from raison.core.errors import InputError, RaisonError, UnsupportedError
from raison.core.inputs.unit import Text
from raison.core.method import Method, Property
from raison.core.metric import Metric, Need
from raison.core.model import LanguageModel
from raison.core.results.explanation import Explanation
from raison.explaining.batch import prepare
from raison.explaining.prediction_change import Predicted, predicted
from raison.explaining.settings import Settings
from raison.judging.evaluate import DEFAULT_METRICS, default_metrics
from raison.methods import CATALOGUE
from raison.metrics import CATALOGUE as METRICS
from raison.models.adapters.checks.selfcheck import selfcheck
from raison.models.adapters.classifier import Classifier
from raison.report.explanations.html import page
from raison.report.explanations.terminal import explanation_text
from raison.report.pages.writing import shown
from raison.report.style.terminal_text import plain
from raison.report.tables.results import markdown
from raison.report.tables.terminal import results_plain
from raison.studies.kinds.audit.sections import file_of, sections
from raison.studies.kinds.audit.spec import AuditPlan
from raison.studies.kinds.comparison.results import read as read_study
from raison.studies.reports import write
from raison.trust.attack_settings import EmbeddingAttack
from raison.trust.results import substituted
from raison.trust.substitution import Substitution
from tests.contracts.conftest import TEXTS
from tests.contracts.test_methods import SHORT_TEXTS, SHORTER
from tests.tiny import TINY, build

PROBLEMS = (None, "regression")
"""What transformers' problem_type may be where one output is a number."""
FAMILIES = sorted(TINY)


@cache
def scorer(family: str, problem: str | None = None) -> Classifier:
    """A tiny model with one output of a size that a sigmoid would turn into 1."""
    model, tokenizer = build(family, ("rating",), problem)
    head = dict(model.named_children()).get("score") or dict(model.named_children()).get("classifier")
    head = head or dict(model.named_children()).get("logits_proj") or model.classification_head
    last = [module for module in head.modules() if isinstance(module, torch.nn.Linear)][-1]
    with torch.no_grad():
        last.weight.mul_(20)
        if last.bias is not None:
            last.bias.add_(20)
    loaded = raison.load(model, tokenizer)
    assert isinstance(loaded, Classifier)
    return loaded


def raw(model: Classifier, text: str) -> float:
    """What the plain model says, called as its own documentation has it."""
    inputs = model.tokenizer(text, return_tensors="pt")
    names = set(model.tokenizer.model_input_names)
    with torch.no_grad():
        return float(model.model(**{name: value for name, value in inputs.items() if name in names}).logits[0, 0])


def raw_without(model: Classifier, text: str, words: set[int]) -> float:
    """The same with every token of some words replaced by the unknown one."""
    inputs = model.tokenizer(text, return_tensors="pt")
    hidden = torch.tensor([owner in words for owner in inputs.word_ids(0)])
    inputs["input_ids"][0, hidden] = model.tokenizer.unk_token_id
    with torch.no_grad():
        return float(model.model(**inputs).logits[0, 0])


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("family", FAMILIES)
def test_the_value_is_the_models_own_output(family: str, problem: str | None) -> None:
    model = scorer(family, problem)
    assert (model.classes, model.outputs) == (("rating",), "number")
    for text in TEXTS:
        e = raison.explain(model, text, "occlusion", removal="delete")
        assert (e.target, e.of, e.outputs, e.probabilities, e.against) == ("rating", "logit", "number", (), None)
        assert e.value_full == pytest.approx(raw(model, text), abs=1e-5 * max(1, abs(e.value_full)))
        assert Explanation.from_json(e.to_json()) == e


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("family", FAMILIES)
def test_doctor_finds_nothing_wrong(family: str) -> None:
    assert [finding for finding in selfcheck(scorer(family)) if not finding.passed] == []


@pytest.mark.parametrize("name", CATALOGUE.names)
@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "t5_encoder"])
def test_every_method_explains_the_number_or_says_why_not(family: str, name: str) -> None:
    model, method = scorer(family), CATALOGUE.create(SHORTER.get(name, name))
    text = SHORT_TEXTS[0]
    if refused(model, method):
        with pytest.raises(RaisonError):
            raison.explain(model, text, method)
        return
    e = raison.explain(model, text, method)
    assert np.isfinite(e.scores).all()
    assert e.value_full == pytest.approx(raw(model, text), abs=1e-4)
    if Property.COMPLETE in method.properties:
        allowed = e.notes.get("completeness_gap", 0.0)
        assert e.completeness_gap == pytest.approx(allowed, abs=2e-3 * max(1.0, abs(e.value_full - e.value_empty)))
    if "decomposition_gap" in e.notes:
        assert e.notes["decomposed"] == "logit"
        assert e.notes["decomposition_gap"] < 1e-3 * max(1.0, abs(e.value_full))


def refused(model: Classifier, method: Method) -> bool:
    """Whether a refusal is one that is told before anything runs."""
    if method.lacking(model):
        return True
    try:
        method.check(model)
    except RaisonError:
        return True
    return False


def test_occlusion_and_shapley_are_those_of_the_number() -> None:
    """Against values of the plain model alone: nothing of a sigmoid is left, which would make all of them zero."""
    model, text = scorer("bert"), "a dull plot"
    e = raison.explain(model, text, "occlusion", removal="unk")
    for number, score in enumerate(e.scores):
        assert score == pytest.approx(raw(model, text) - raw_without(model, text, {number}), abs=1e-4)
    exact = raison.explain(model, text, "shapley_exact", removal="unk")
    assert sum(exact.scores) == pytest.approx(raw(model, text) - raw_without(model, text, {0, 1, 2}), abs=1e-4)
    assert max(map(abs, exact.scores)) > 0.1


def test_integrated_gradients_are_complete_on_the_number() -> None:
    e = raison.explain(scorer("bert"), TEXTS[0], "integrated_gradients(steps=200)")
    assert sum(e.scores) == pytest.approx(e.value_full - e.value_empty, abs=1e-3 * abs(e.value_full - e.value_empty))


@pytest.mark.parametrize("of", ["probability", "log_odds", "log_probability", "margin"])
def test_what_is_of_classes_is_refused_in_one_line(of: str) -> None:
    with pytest.raises(InputError, match="of='logit'") as caught:
        raison.explain(scorer("bert"), "dull", of=of)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="of='logit'"):
        raison.compare(scorer("bert"), ["dull"], ["occlusion"], ["comprehensiveness"], of=of)


@pytest.mark.parametrize("target", [("rating", "rating"), (0, 1), 1, "other", -1])
def test_another_target_is_refused(target: object) -> None:
    with pytest.raises(InputError, match="rating"):
        raison.explain(scorer("bert"), "dull", "occlusion", target=target)


@pytest.mark.parametrize("target", [None, 0, "rating", ["rating"], [0]])
def test_the_output_itself_may_be_named(target: object) -> None:
    [e] = raison.explain(scorer("bert"), ["dull"], "occlusion", target=target, of="logit")
    assert e.target == "rating"


def test_one_label_with_a_sigmoid_stays_a_label() -> None:
    model, tokenizer = build("bert", ("toxic",), "multi_label_classification")
    loaded = raison.load(model, tokenizer)
    assert (loaded.classes, loaded.outputs) == (("toxic",), "labels")
    e = raison.explain(loaded, "a dull plot", "occlusion")
    logit = raw(loaded, "a dull plot")
    assert (e.of, e.outputs) == ("probability", "labels")
    assert e.probabilities == (pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-6),)
    assert e.value_full == pytest.approx(e.probabilities[0])
    with pytest.raises(InputError, match="difference between two classes"):
        raison.explain(loaded, "a dull plot", "occlusion", of="margin")


@pytest.mark.parametrize("name", METRICS.names)
def test_every_metric_measures_the_number_or_says_why_not(name: str) -> None:
    metric, model = METRICS.create(name), scorer("bert")
    given = {Need.EMBEDDINGS, Need.HIDDEN_STATES, Need.SEVERAL_TEXTS, Need.METHOD, Need.VALUES}
    needs = metric.needs - given
    found = raison.explain(model, TEXTS, "occlusion", progress=False)
    if needs:
        with pytest.raises(UnsupportedError, match=str(metric and name)):
            raison.evaluate(model, found, [name], progress=False)
        return
    values = raison.evaluate(model, found, [name], progress=False)[name].values
    assert np.isfinite([value for value in values if not np.isnan(value)]).all()


@pytest.mark.parametrize("name", METRICS.names)
def test_metrics_of_the_number_do_not_see_where_its_zero_is(name: str) -> None:
    """A score has no natural zero: what judges an explanation by it moves with it, and orders methods as before."""
    metric = METRICS.create(name)
    if not isinstance(metric, Metric) or metric.needs or not metric.ordered:
        pytest.skip("needs more than the number, or depends on more than the order")
    model, other = scorer("bert"), copy.deepcopy(scorer("bert").model)
    with torch.no_grad():
        other.classifier.bias.sub_(1000)
    moved = raison.load(other, model.tokenizer)
    rows = [
        [
            raison.evaluate(each, raison.explain(each, TEXTS[0], method, progress=False), [name], progress=False)
            for method in ("occlusion", "random")
        ]
        for each in (model, moved)
    ]
    (first, second), (third, fourth) = ([row[name].summary.mean for row in pair] for pair in rows)
    assert first - second == pytest.approx(third - fourth, abs=5e-3)


def test_log_odds_says_what_it_lacks() -> None:
    with pytest.raises(UnsupportedError, match="log_odds needs probabilities of classes"):
        raison.compare(scorer("bert"), ["dull"], ["occlusion"], ["log_odds"])


def test_comprehensiveness_is_the_change_of_the_number() -> None:
    model, text = scorer("bert"), "a dull plot"
    e = raison.explain(model, text, "occlusion", removal="unk")
    found = raison.evaluate(model, e, ["comprehensiveness(share=0.34, removal='unk')"], progress=False)
    change = raw(model, text) - raw_without(model, text, {e.order()[0]})
    assert found.metrics[0].summary.mean == pytest.approx(change, abs=1e-4)


def test_the_usual_metrics_are_those_of_a_number() -> None:
    model = scorer("bert")
    usual = [name for name in DEFAULT_METRICS if name != "log_odds"]
    found = raison.compare(model, ["a dull plot"], ["occlusion"], progress=False)
    assert [scores.metric for scores in found["occlusion"].metrics] == usual
    one = raison.evaluate(model, raison.explain(model, "a dull plot", "occlusion"), progress=False)
    assert [scores.metric for scores in one.metrics] == usual
    classes = raison.load(*TINY["bert"]())
    assert default_metrics(classes) == list(DEFAULT_METRICS)


def test_comparisons_and_estimates_work() -> None:
    from raison.judging.estimate import estimate

    model = scorer("bert")
    found = raison.compare(model, TEXTS, ["occlusion"], ["comprehensiveness", "sufficiency"], progress=False)
    assert found.of == "logit"
    for told in (results_plain(found), markdown(found)):
        assert "score explained word by word" in " ".join(told.split())
        assert "logit" not in told
    alone = raison.evaluate(model, raison.explain(model, TEXTS, "occlusion", progress=False), ["comprehensiveness"])
    assert found["occlusion"]["comprehensiveness"].values == pytest.approx(alone["comprehensiveness"].values, abs=1e-4)
    assert estimate(model, TEXTS, ["occlusion"], ["comprehensiveness"]).forwards["occlusion"] > 0


TRIED = AuditPlan(
    randomised=2,
    changed=2,
    attacked=3,
    attack=EmbeddingAttack(epsilon=1.0, relative=True, steps=3, optimiser="sign", draws=3),
    substitution=Substitution(swaps=1, tries=24),
)
AUDITED = ["a quiet film and a loud end", "the film is not good .", "a dull and quiet pleasure"]


def test_an_audit_tries_everything_and_speaks_of_scores(tmp_path: Path) -> None:
    model = scorer("bert")
    found = raison.audit(model, AUDITED, ["saliency", "occlusion"], out=tmp_path / "a", plan=TRIED, progress=False)
    assert found.progress[0] == found.progress[1]
    assert dict(found.left_out).keys() == {"occlusion, attacked by shifted embeddings"}
    for one in found.methods:
        for question in ("faithful", "parameters", "attacks"):
            assert one[question].value is not None, question
        assert "changes the score (rating) by" in one["attacks"].says
    # The change of an attacked text, in the number's own units, is that of the two explanations.
    every = [substituted(found.folder, found.trust, one.method) for one in found.methods]
    told = next(one for one in every if one is not None)
    was, now = told.before.value_full, told.after.value_full
    assert told.record.probability_change == pytest.approx(was - now, abs=1e-4)
    assert abs(was - now) <= 0.05 * abs(was - told.before.value_empty)
    pages = write(tmp_path / "a", tmp_path / "report", draw=False).parent.glob("*.html")
    for text in [*(one.read_text().split("<body")[1] for one in pages), plain(Group(*shown(sections(found))))]:
        assert "robabilit" not in text
        assert "predicted class" not in text
    said = (tmp_path / "report" / file_of(told.record.method)).read_text()
    assert "raises the score, blue lowers it" in said or "how much a unit matters" in said
    assert f"The score, rating, stays: {was:.3f} before" in said
    assert json.loads(json.dumps(found.to_dict(), allow_nan=False))["methods"]


@pytest.mark.parametrize("ranks", [False, True])
def test_a_number_stays_where_it_moves_by_little_of_what_the_text_moves_it(ranks: bool) -> None:
    text = ("who ?", "a dull plot", "the old sailor") if ranks else "a dull plot"
    model = scorer("bert").ranker if ranks else scorer("bert")
    batch = prepare(model, [text, text], Settings())
    full, empty = (float(one) for one in ends(model, text))
    known = predicted(batch)
    assert known.effect == pytest.approx([abs(full - empty)] * 2, rel=1e-4)
    for share, within in ((0.04, True), (-0.04, True), (0.06, False), (-0.06, False)):
        moved = torch.full((2, 1), full + share * abs(full - empty), dtype=torch.float64)
        same_order = not ranks or float(moved[0]) * full > 0
        assert known.same(moved).tolist() == [within and same_order] * 2
        assert known.lost(moved).tolist() == pytest.approx([-share] * 2, abs=1e-4)
        assert known.value(moved).tolist() == moved[:, 0].tolist()
    assert not known.undecided().any()
    assert replace(known, effect=torch.zeros(2)).undecided().all()


def test_two_documents_keep_their_order() -> None:
    before = Predicted(torch.tensor([[0.1]]), torch.tensor([0]), False, torch.tensor([10.0]), ranks=True)
    assert before.within(torch.tensor([[0.2]]), 0.05).tolist() == [True]
    assert before.within(torch.tensor([[-0.1]]), 0.05).tolist() == [False]
    assert replace(before, ranks=False).within(torch.tensor([[-0.1]]), 0.05).tolist() == [True]
    assert replace(before, logits=torch.tensor([[1e-9]])).undecided().tolist() == [True]


def ends(model: LanguageModel, text: Text) -> tuple[float, float]:
    """The number of the whole text, and of the text without its units."""
    [e] = raison.explain(model, [text], "occlusion", progress=False)
    return e.value_full, e.value_empty


STUDY = """schema = 1
title = "A number"
methods = ["occlusion"]
metrics = ["comprehensiveness"]

[models.scorer]
name = {model}

[data.words]
source = {data}
"""


def test_a_study_and_a_folder_explain_the_number_without_being_told(tmp_path: Path) -> None:
    from raison.runs.table import comparison
    from raison.studies.runner import run

    model = scorer("bert")
    model.model.save_pretrained(tmp_path / "model")
    model.tokenizer.save_pretrained(tmp_path / "model")
    (tmp_path / "words.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    places = {"model": json.dumps(str(tmp_path / "model")), "data": json.dumps(str(tmp_path / "words.jsonl"))}
    (tmp_path / "study.toml").write_text(STUDY.format(**places))
    run(tmp_path / "study.toml", tmp_path / "out", progress=False)
    [found] = read_study(tmp_path / "out").runs.values()
    table = comparison(found)
    assert table.of == "logit"
    assert "score explained word by word" in " ".join(results_plain(table).split())
    expected = raison.compare(scorer("bert"), TEXTS, ["occlusion"], ["comprehensiveness"], progress=False)
    assert table["occlusion"]["comprehensiveness"].values == pytest.approx(
        expected["occlusion"]["comprehensiveness"].values, abs=1e-3
    )


def test_views_say_a_score_and_never_a_percentage() -> None:
    e = raison.explain(scorer("bert"), "a dull plot", "occlusion")
    shown = plain(explanation_text(e))
    markup = page(e).split("<article")[1]
    told = f"{e.value_full:.1f}"
    assert shown.startswith(f"Score      {told} (rating)\n")
    assert "the score, rating, word by word" in shown
    assert f"Score <b><bdi>{told}</bdi></b> (rating)" in markup
    for text in (shown, markup.partition("<footer")[0]):
        assert "raises the score" in text
        assert "lowers the score" in text
        assert "redicted" not in text
        assert "robabilit" not in text
    assert "%" not in shown
    assert json.loads(e.to_json())["outputs"] == "number"
