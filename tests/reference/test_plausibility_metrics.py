"""Token F1, IOU F1, AUPRC and AUROC against ERASER's scorer written out literally, and against scikit-learn."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from sklearn.metrics import auc, f1_score, precision_recall_curve, roc_auc_score

import raison
from raison.core.errors import InputError, UnknownNameError
from raison.core.inputs.rationale import Span
from raison.core.metric import Metric, Need
from raison.core.results.explanation import Explanation
from raison.metrics import CATALOGUE
from raison.numerics.statistics.bootstrap import pooled_interval
from tests.reference.test_known_feature_metrics import Marked, explain

NAMES = ("token_f1", "iou_f1", "auprc", "auroc")
COMBINED = {
    "majority": lambda votes, annotators: votes > annotators / 2,
    "union": lambda votes, annotators: votes > 0,
    "intersection": lambda votes, annotators: votes == annotators,
}


@dataclass(frozen=True)
class Case:
    """One text: scores, segments and the marks of its annotators."""

    scores: np.ndarray
    segments: tuple[int, ...]
    marks: np.ndarray

    @property
    def explanation(self) -> Explanation:
        return explain(self.scores.tolist(), self.segments)

    @property
    def evidence(self) -> Marked:
        return Marked(tuple(self.marks))


def make_cases(annotators: int = 3, some_marked: bool = False, seed: int = 0) -> list[Case]:
    """Random texts of 1 to 40 units, many with tied scores, two segments, all units marked or none."""
    rng = np.random.default_rng(seed)
    cases = []
    for number in range(60):
        units = int(rng.integers(1, 41)) if number > 5 else 1
        scores = rng.normal(size=units) if number % 2 else rng.integers(-2, 3, size=units) / 2
        border = int(rng.integers(1, units + 1))
        marks = rng.random((annotators, units)) < (0.0, 1.0, 0.3, 0.5, 0.8)[number % 5]
        if some_marked:
            marks[:, rng.integers(units)] = True
        cases.append(Case(scores, (0,) * border + (1,) * (units - border), marks))
    return cases


def pooled(metric: Metric, cases: Sequence[Case]) -> float:
    """What evaluate.py makes of the texts: those that are not defined are left out."""
    rows = [metric.measure(case.explanation, case.evidence) for case in cases]
    parts = np.array([row if isinstance(row, tuple) else (row,) for row in rows])
    return pooled_interval(parts[~np.isnan(parts).any(axis=1)], metric.pool)[0]


def top_units(scores: np.ndarray, count: int) -> set[int]:
    """By repeatedly taking the first of the largest."""
    left, taken = list(range(len(scores))), set()
    while left and len(taken) < count:
        best = max(left, key=lambda unit: (scores[unit], -unit))
        left.remove(best)
        taken.add(best)
    return taken


Rationale = tuple[int, int, int]
"""ERASER's record of one span: document, first unit, unit after the last."""


def by_document(rationales: set[Rationale]) -> dict[int, set[Rationale]]:
    found: dict[int, set[Rationale]] = {}
    for rationale in rationales:
        found.setdefault(rationale[0], set()).add(rationale)
    return found


def f1(p: float, r: float) -> float:
    return 0 if p == 0 or r == 0 else 2 * p * r / (p + r)


def eraser_hard(truth: set[Rationale], pred: set[Rationale]) -> tuple[float, float]:
    """score_hard_rationale_predictions: (instance_macro f1, instance_micro f1)."""
    micro = f1(len(truth & pred) / len(pred), len(truth & pred) / len(truth))
    truths, preds = by_document(truth), by_document(pred)
    values = []
    for key in truths.keys() | preds.keys():
        t, p = truths.get(key, set()), preds.get(key, set())
        values.append(f1(len(t & p) / len(p) if p else 0, len(t & p) / len(t) if t else 0))
    return sum(values) / len(values), micro


def eraser_partial(truth: set[Rationale], pred: set[Rationale], threshold: float) -> tuple[float, float]:
    """partial_match_score: (macro f1, micro f1)."""
    truths, preds = by_document(truth), by_document(pred)
    hits = {}
    for key in truths.keys() | preds.keys():
        best = []
        for _, start, end in preds.get(key, set()):
            ious = [0.0]
            for _, begin, stop in truths.get(key, set()):
                mine, theirs = set(range(start, end)), set(range(begin, stop))
                ious.append(len(mine & theirs) / len(mine | theirs))
            best.append(max(ious))
        hits[key] = sum(iou >= threshold for iou in best)
    micro = f1(sum(hits.values()) / len(truth), sum(hits.values()) / len(pred))
    recalls = [hits.get(key, 0) / len(those) for key, those in truths.items()]
    precisions = [hits.get(key, 0) / len(those) for key, those in preds.items()]
    return f1(sum(recalls) / len(recalls), sum(precisions) / len(precisions)), micro


def tokens_of(document: int, units: set[int]) -> set[Rationale]:
    return {(document, unit, unit + 1) for unit in units}


def spans_of(document: int, units: set[int], segments: Sequence[int]) -> set[Rationale]:
    """Every interval of one segment that is inside and cannot grow."""

    def inside(start: int, end: int) -> bool:
        return set(range(start, end)) <= units and len(set(segments[start:end])) == 1

    return {
        (document, start, end)
        for start in units
        for end in range(start + 1, len(segments) + 1)
        if inside(start, end)
        and not (end < len(segments) and inside(start, end + 1))
        and not (start > 0 and inside(start - 1, end))
    }


def annotations(cases: Sequence[Case], annotators: str, top: int | None) -> list[tuple[set[int], set[int]]]:
    """(marked, predicted) units of each text."""
    found = []
    for case in cases:
        votes = case.marks.sum(axis=0)
        marked = set(np.flatnonzero(COMBINED[annotators](votes, len(case.marks))).tolist())
        found.append((marked, top_units(case.scores, len(marked) if top is None else top)))
    return found


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("annotators", COMBINED)
@pytest.mark.parametrize("top", [None, 1, 4, 25])
def test_token_f1_is_that_of_eraser(top: int | None, annotators: str, count: int) -> None:
    cases = make_cases(count)
    truth: set[Rationale] = set()
    pred: set[Rationale] = set()
    for document, (marked, predicted) in enumerate(annotations(cases, annotators, top)):
        truth |= tokens_of(document, marked)
        pred |= tokens_of(document, predicted)
    macro, micro = eraser_hard(truth, pred)
    assert 0 < macro < 1
    for average, expected in (("macro", macro), ("micro", micro)):
        metric = CATALOGUE.create(f"token_f1(top={top}, average={average!r}, annotators={annotators!r})")
        assert pooled(metric, cases) == pytest.approx(expected, abs=1e-9)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("threshold", [0.1, 0.5, 2 / 3, 1.0])
@pytest.mark.parametrize("annotators", COMBINED)
@pytest.mark.parametrize(("top", "some_marked"), [(None, False), (None, True), (3, True), (10, True)])
def test_iou_f1_is_that_of_eraser(top: int | None, some_marked: bool, annotators: str, threshold: float) -> None:
    cases = make_cases(some_marked=some_marked)
    truth: set[Rationale] = set()
    pred: set[Rationale] = set()
    for document, (marked, predicted) in enumerate(annotations(cases, annotators, top)):
        truth |= spans_of(document, marked, cases[document].segments)
        pred |= spans_of(document, predicted, cases[document].segments)
    macro, micro = eraser_partial(truth, pred, threshold)
    assert macro > 0
    for average, expected in (("macro", macro), ("micro", micro)):
        metric = CATALOGUE.create(
            f"iou_f1(threshold={threshold}, top={top}, average={average!r}, annotators={annotators!r})"
        )
        assert pooled(metric, cases) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("annotators", COMBINED)
@pytest.mark.parametrize("count", [1, 2, 3])
def test_curve_areas_are_those_of_scikit_learn(annotators: str, count: int) -> None:
    defined = False
    cases = make_cases(count)
    for case, (marked, _) in zip(cases, annotations(cases, annotators, None), strict=True):
        areas = [
            CATALOGUE.create(f"{name}(annotators={annotators!r})").measure(case.explanation, case.evidence)
            for name in ("auprc", "auroc")
        ]
        if len(marked) in (0, len(case.scores)):
            assert np.isnan(areas).all()
            continue
        defined = True
        truth = [int(unit in marked) for unit in range(len(case.scores))]
        precision, recall, _ = precision_recall_curve(truth, case.scores)
        assert areas == pytest.approx([auc(recall, precision), roc_auc_score(truth, case.scores)], abs=1e-9)
    assert defined


SPECS = ("token_f1(top=4)", "token_f1(average='micro')", "iou_f1(top=4)", "iou_f1(average='micro')", "auprc", "auroc")


@pytest.mark.parametrize("spec", SPECS)
def test_each_annotator_is_averaged_where_defined(spec: str) -> None:
    alone = CATALOGUE.create(spec)
    for case in make_cases():
        values = [np.atleast_1d(alone.measure(case.explanation, Marked((one,)))) for one in case.marks]
        # Counts of an annotator who marked nothing are zero; they are left out only if nobody marked anything.
        counts = "micro" in spec and not np.isnan(values).all()
        known = np.nan_to_num(values) if counts else np.ma.masked_invalid(values)
        expected = np.ma.filled(known.mean(axis=0), np.nan)
        found = np.atleast_1d(replace(alone, annotators="each").measure(case.explanation, case.evidence))
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_one_text_by_hand() -> None:
    """Marked are the units 1, 2, 5; the scores put 1, 2, 3 first."""
    explanation = explain([0.1, 0.9, 0.8, 0.7, 0.2, 0.3])
    evidence = Marked((np.array([False, True, True, False, False, True]),))
    assert CATALOGUE.create("token_f1(top=3)").measure(explanation, evidence) == pytest.approx(2 / 3)
    # As many as are marked; all six where there are fewer than 25.
    assert CATALOGUE.create("token_f1").measure(explanation, evidence) == pytest.approx(2 / 3)
    assert CATALOGUE.create("token_f1(top=2)").measure(explanation, evidence) == pytest.approx(4 / 5)
    assert CATALOGUE.create("token_f1(top=25)").measure(explanation, evidence) == pytest.approx(6 / 9)
    assert CATALOGUE.create("token_f1(top=2, average='micro')").measure(explanation, evidence) == (4, 5)
    # One predicted span, 1 to 3, has two of three units in common with 1 to 2; 5 is missed.
    assert CATALOGUE.create("iou_f1").measure(explanation, evidence) == (1, 0.5)
    assert CATALOGUE.create("iou_f1(threshold=0.7)").measure(explanation, evidence) == (0, 0)
    # Eight of the nine pairs are in order: 5 is above 4 and 0, but below 3.
    assert CATALOGUE.create("auroc").measure(explanation, evidence) == pytest.approx(8 / 9)
    # Precision 1 up to recall 2/3, then 3/4 at full recall after falling to 2/3 between.
    expected = 2 / 3 + (2 / 3 + 3 / 4) / 2 / 3
    assert CATALOGUE.create("auprc").measure(explanation, evidence) == pytest.approx(expected)


def test_token_f1_of_one_text_is_that_of_scikit_learn() -> None:
    for case in make_cases(1, some_marked=True):
        predicted = [unit in top_units(case.scores, 5) for unit in range(len(case.scores))]
        found = CATALOGUE.create("token_f1(top=5)").measure(case.explanation, case.evidence)
        assert found == pytest.approx(f1_score(case.marks[0], predicted, zero_division=0), abs=1e-12)


def test_a_span_does_not_go_over_the_border_of_a_pair() -> None:
    marks = (np.array([False, True, True, False]),)
    scores = [0.0, 1.0, 0.9, 0.1]
    metric = CATALOGUE.create("iou_f1(average='micro')")
    assert metric.measure(explain(scores), Marked(marks)) == (2, 2)
    assert metric.measure(explain(scores, [0, 0, 1, 1]), Marked(marks)) == (4, 4)


def test_majority_is_more_than_half() -> None:
    explanation = explain([0.9, 0.8, 0.1])
    one, two = np.array([True, True, False]), np.array([True, False, False])
    metric = CATALOGUE.create("token_f1(top=1)")
    assert metric.measure(explanation, Marked((one, two))) == 1
    assert metric.measure(explanation, Marked((one, one, two))) == pytest.approx(2 / 3)
    assert metric.measure(explanation, Marked((one, one, two, two))) == 1


def test_nothing_marked() -> None:
    """As in ERASER: what is predicted there is wrong; where nothing is predicted, the text does not count.

    Only the macro average over spans leaves the text out, which has no recall: two methods could not be compared on it.
    """
    explanation, evidence = explain([0.3, 0.2]), Marked((np.zeros(2, dtype=bool),))
    assert CATALOGUE.create("token_f1(top=25)").measure(explanation, evidence) == 0
    assert np.isnan(CATALOGUE.create("token_f1").measure(explanation, evidence))
    assert CATALOGUE.create("token_f1(top=25, average='micro')").measure(explanation, evidence) == (0, 2)
    assert CATALOGUE.create("iou_f1(top=1, average='micro')").measure(explanation, evidence) == (0, 1)
    np.testing.assert_equal(CATALOGUE.create("iou_f1(top=1)").measure(explanation, evidence), (np.nan, np.nan))
    assert np.isnan(CATALOGUE.create("iou_f1").measure(explanation, evidence)).all()


def test_equal_scores_say_nothing() -> None:
    """The docstrings' numbers: one half for AUROC, (1 + share) / 2 for AUPRC, wherever the marks are."""
    for evidence in (Marked((np.arange(4) == place,)) for place in range(4)):
        assert CATALOGUE.create("auroc").measure(explain([2.0] * 4), evidence) == 0.5
        assert CATALOGUE.create("auprc").measure(explain([2.0] * 4), evidence) == pytest.approx(0.625)


@pytest.mark.parametrize("name", NAMES)
def test_direction_and_scale(name: str) -> None:
    metric = CATALOGUE.create(f"{name}(top=3)" if name.endswith("f1") else name)
    assert metric.higher_is_better
    assert metric.needs == {Need.RATIONALES}
    scores = np.array([0.1, 0.9, 0.8, 0.7, 0.2, 0.3, -0.4, -0.5])
    marks = np.array([0, 1, 1, 1, 0, 0, 0, 0], dtype=bool)
    cases = [Case(sign * factor * scores, (0,) * 8, marks[None]) for sign, factor in ((1, 1), (1, 7.5), (-1, 1))]
    good, scaled, bad = (pooled(metric, [case]) for case in cases)
    assert good == scaled == pytest.approx(1)
    assert bad < 0.5


@pytest.mark.parametrize("name", ["token_f1", "iou_f1"])
def test_settings_are_checked(name: str) -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'micro'"):
        CATALOGUE.create(f"{name}(average='mikro')")
    for top in (0, -1):
        with pytest.raises(InputError, match="at least 1"):
            CATALOGUE.create(f"{name}(top={top})")
    for threshold in (0.0, -0.1, 1.1):
        with pytest.raises(InputError, match="at most 1"):
            CATALOGUE.create(f"iou_f1(threshold={threshold})")


@pytest.mark.parametrize("name", ["token_f1", "iou_f1"])
def test_texts_without_marks_do_not_count_among_those_of_a_micro_average(name: str) -> None:
    """They add nothing to its sums: with them its interval would be that of more texts."""
    model = raison.load(lambda texts: [[len(text) / 100, 1 - len(text) / 100] for text in texts], classes=["a", "b"])
    texts = [f"good bad film number {letter}" for letter in "abcdefghij"]
    marks = [[(Span(0, 4),)], *[[()]] * 9]
    table = raison.compare(model, texts, "occlusion", f"{name}(average='micro')", rationales=marks, progress=False)
    alone = raison.compare(
        model, texts[:1], "occlusion", f"{name}(average='micro')", rationales=marks[:1], progress=False
    )
    found, expected = (one["occlusion"].metrics[0].summary for one in (table, alone))
    assert (found.count, found.mean) == (expected.count, expected.mean) == (1, found.mean)
