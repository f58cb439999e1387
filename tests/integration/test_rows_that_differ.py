"""Judging explanations whose texts, quantities or ties differ in ways that a mean would hide."""

import math
from pathlib import Path

import pytest

import raison
from raison.core.errors import InputError, UnsupportedError
from raison.core.model import LanguageModel
from raison.metrics.iou_f1 import IouF1
from raison.runs.statistics import subtract
from tests.functions import labels, shares

FILMS = ["good film", "very good film", "plain film today", "plain thing here"]


@pytest.fixture
def model() -> LanguageModel:
    return raison.load(shares, classes=["negative", "positive"])


def test_texts_without_marks_have_no_part_in_span_f1(model: LanguageModel) -> None:
    marks: list[list[list[tuple[int, int]]]] = [[[(0, 4)]], [[(5, 9)]], [[]], [[]]]
    compared = raison.compare(
        model, FILMS, ["occlusion", "random"], "iou_f1(top=1)", rationales=marks, seed=[0, 1], progress=False
    )
    first, second = (row.metrics[0] for row in compared.rows)
    assert (first.summary.mean, first.summary.count) == (1.0, 2)
    assert (first.summary.low, first.summary.high) == (1.0, 1.0)
    for seed, mean in enumerate(second.seed_means):
        alone = raison.compare(model, FILMS, "random", "iou_f1(top=1)", rationales=marks, seed=seed, progress=False)
        assert alone.rows[0].metrics[0].summary.mean == mean
    assert all(map(math.isnan, first.values[2:]))
    difference = subtract(second, first)
    assert difference.count == 2
    assert difference.mean == pytest.approx(second.summary.mean - first.summary.mean)
    only = raison.compare(model, FILMS[:2], "occlusion", "iou_f1(top=1)", rationales=marks[:2], progress=False)
    assert only.rows[0].metrics[0].summary.mean == 1.0
    assert IouF1(top=1).pool == "f1"


@pytest.mark.parametrize(
    "metric",
    ["auroc", "auprc", "mean_rank", "precision_at_top(top=2)", "recall_at_top(top=2)", "important_token_share"],
)
def test_rounding_decides_no_tie(metric: str) -> None:
    """The equations of kernel_shap give words without effect scores of about 1e-17."""

    def found(texts: list[str]) -> list[list[float]]:
        return [[1 - p, p] for p in (0.9 if "good" in text else 0.2 for text in texts)]

    model = raison.load(found, classes=["no", "yes"])
    for text, marked in (("a bad but good film", (0, 1)), ("good good good", (0, 4))):
        values = []
        for method in ("shapley_exact", "kernel_shap"):
            e = raison.explain(model, text, method)
            scores = raison.evaluate(model, [e], metric, rationales=[[[marked]]], progress=False)
            values.append(scores.metrics[0].values[0])
        assert values[0] == pytest.approx(values[1], nan_ok=True)


@pytest.mark.parametrize("judge", ["evaluate", "compare"])
def test_a_student_is_not_tested_on_a_text_that_taught_it(judge: str) -> None:
    metric = "simulatability(student='tiny', epochs=1, max_tokens=16)"
    model = raison.load(labels, classes=["one", "two"], multi_label=True)
    texts = [f"a {'good' if number % 2 else 'bad'} film {number}" for number in range(10)]

    def judged() -> object:
        if judge == "compare":
            return raison.compare(model, texts, "occlusion", metric, target="each", threshold=0, progress=False)
        each = raison.explain(model, texts, "occlusion", target="each", threshold=0)
        return raison.evaluate(model, each, metric, progress=False)

    with pytest.raises(UnsupportedError, match="is about different texts, and some are explained several times"):
        judged()


@pytest.mark.parametrize("setting", ["of", "removal"])
def test_different_quantities_have_no_mean(model: LanguageModel, setting: str) -> None:
    change = {"of": "log_odds"} if setting == "of" else {"removal": model.removals[1]}
    first, second = raison.explain(model, FILMS[0], "occlusion"), raison.explain(model, FILMS[1], "occlusion", **change)
    assert getattr(first, setting) != getattr(second, setting)
    with pytest.raises(InputError, match="differ in method, settings, unit, quantity"):
        raison.evaluate(model, [first, second], "completeness_error", progress=False)


def test_a_metric_is_named_once(model: LanguageModel) -> None:
    with pytest.raises(InputError, match="the metric comprehensiveness is named twice"):
        raison.compare(model, FILMS, "random", ["comprehensiveness", "comprehensiveness()"], progress=False)


def test_a_narrow_kernel_is_no_error(model: LanguageModel) -> None:
    e = raison.explain(model, FILMS[0], "lime(kernel_width=1e-200)")
    assert all(map(math.isfinite, e.scores))


def test_an_ensemble_refuses_what_a_member_refuses(model: LanguageModel, tmp_path: Path) -> None:
    texts, out = [*FILMS, " ".join(["word"] * 20)], tmp_path / "run"
    with pytest.raises(InputError, match="20 units"):
        raison.compare(
            model, texts, "ensemble(methods=('shapley_exact', 'occlusion'))", "sufficiency", progress=False, out=out
        )
    assert not out.exists()
