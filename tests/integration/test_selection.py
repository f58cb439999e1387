"""Maps chosen by a metric, several seeds, group metrics and marked texts in one comparison."""

from pathlib import Path

import numpy as np
import pytest

import raison
from raison.core.errors import DataError, InputError, UnsupportedError
from raison.core.rationale import Span
from raison.models.classifier import Classifier
from raison.runs.run import read_run
from raison.runs.table import comparison
from tests.integration.test_compare import TEXTS
from tests.tiny import TINY

DRAWS = 5
CONTROL = f"random(draws={DRAWS})"


@pytest.fixture(scope="module")
def model() -> Classifier:
    return raison.load(*TINY["bert"]())


def test_the_best_of_n_is_never_worse_than_its_first_draw(model: Classifier) -> None:
    metrics = ["comprehensiveness", "sufficiency"]
    table = raison.compare(model, TEXTS[:20], [CONTROL], metrics, select=metrics, progress=False)
    assert [row.method for row in table.rows] == [CONTROL, "random", *(f"{CONTROL} by {metric}" for metric in metrics)]
    for metric in metrics:
        row = table[f"{CONTROL} by {metric}"]
        assert row.selected_by == metric
        sign = 1 if row[metric].higher_is_better else -1
        chosen, first = np.array(row[metric].values), np.array(table[CONTROL][metric].values)
        assert (sign * chosen >= sign * first).all()
        assert (chosen != first).any()


def test_selection_says_what_it_chose_from_and_what_that_cost(model: Classifier, tmp_path: Path) -> None:
    raison.compare(
        model, TEXTS[:4], [CONTROL], ["sufficiency"], select=["comprehensiveness"], out=tmp_path, progress=False
    )
    explanations = read_run(tmp_path).explanations(f"{CONTROL} by comprehensiveness", 0)
    for e in explanations:
        values = e.notes["candidate_values"]
        assert (e.notes["selected_by"], e.notes["candidates"]) == ("comprehensiveness", DRAWS)
        # One unit is removed from these short texts: as many passes as different units were tried.
        assert 1 <= e.evaluations <= min(DRAWS, len(e.units))
        again = raison.evaluate(model, e, ["comprehensiveness"])
        assert again["comprehensiveness"].values[0] == pytest.approx(max(values), abs=1e-6)


def test_a_choice_needs_something_to_choose_from_and_by(model: Classifier) -> None:
    with pytest.raises(InputError, match="none of the methods offers any"):
        raison.compare(model, TEXTS[:2], ["occlusion"], select=["sufficiency"], progress=False)
    with pytest.raises(UnsupportedError, match=r"gini says neither.*consistency judges many"):
        raison.compare(model, TEXTS[:2], [CONTROL], select=["gini", "consistency"], progress=False)


def test_several_seeds_are_averaged(model: Classifier) -> None:
    together = raison.compare(model, TEXTS[:6], ["occlusion"], ["comprehensiveness"], seed=[0, 1, 2], progress=False)
    alone = [
        raison.compare(model, TEXTS[:6], ["occlusion"], ["comprehensiveness"], seed=seed, progress=False)
        for seed in range(3)
    ]
    random = together["random"]["comprehensiveness"]
    each = np.array([table["random"]["comprehensiveness"].values for table in alone])
    np.testing.assert_allclose(random.values, each.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(random.seed_means, each.mean(axis=1), atol=1e-6)
    assert together["occlusion"]["comprehensiveness"].seed_means == ()
    with pytest.raises(InputError, match="list of different ones"):
        raison.compare(model, TEXTS[:2], ["occlusion"], seed=[1, 1], progress=False)


def test_marked_texts_and_groups_in_a_folder(model: Classifier, tmp_path: Path) -> None:
    texts = TEXTS[:30]
    rationales = [((Span(0, 3),), (Span(0, 8),)) for _ in texts]
    metrics = ["auroc", "token_f1(top=2, average='micro')", "consistency(batch=10)", "comprehensiveness"]

    def go() -> raison.Comparison:
        return raison.compare(model, texts, ["occlusion"], metrics, rationales=rationales, out=tmp_path, progress=False)

    table = go()
    assert len(table["occlusion"]["consistency(batch=10)"].values) == 3
    assert table["occlusion"]["token_f1(top=2, average='micro')"].pool == "ratio"
    (tmp_path / "groups.jsonl").unlink()
    assert go().records() == table.records()
    (tmp_path / "groups.jsonl").unlink()
    (tmp_path / "explanations.jsonl").unlink()
    with pytest.raises(DataError, match="holds records only"):
        go()


def test_classes_named_text_by_text(model: Classifier) -> None:
    table = raison.compare(model, TEXTS[:3], ["occlusion"], ["comprehensiveness"], target=[0, 1, 2], progress=False)
    values = table["occlusion"]["comprehensiveness"].values
    for number, value in enumerate(values):
        e = raison.explain(model, TEXTS[number], "occlusion", target=number)
        assert raison.evaluate(model, e, ["comprehensiveness"])["comprehensiveness"].values[0] == pytest.approx(
            value, abs=1e-5
        )
    with pytest.raises(InputError, match="2 targets for 3 texts"):
        raison.compare(model, TEXTS[:3], ["occlusion"], target=[0, 1], progress=False)


def test_metrics_without_what_they_need_are_refused_together(model: Classifier, tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError) as caught:
        raison.compare(model, TEXTS[:3], ["occlusion"], ["auroc", "iou_f1"], out=tmp_path, progress=False)
    assert len(caught.value.reasons) == 2
    assert not list(tmp_path.iterdir())


def test_a_run_stopped_among_its_group_metrics_still_reads(model: Classifier, tmp_path: Path) -> None:
    metrics = ["consistency(batch=5)", "comprehensiveness"]
    raison.compare(model, TEXTS[:10], ["occlusion"], metrics, seed=[0, 1], out=tmp_path, progress=False)
    path = tmp_path / "groups.jsonl"
    path.write_text("".join(line for line in path.read_text().splitlines(True) if '"seed": 1' not in line))
    table = comparison(read_run(tmp_path))
    assert table["random"]["consistency(batch=5)"].summary.count == 0
    assert table["occlusion"]["consistency(batch=5)"].summary.count == 2
