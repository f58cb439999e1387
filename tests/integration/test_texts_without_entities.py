"""A tagger on texts of which some have no entity, as most lists of sentences."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForTokenClassification

import raison
from raison.core.errors import InputError
from raison.data import Dataset, Row
from raison.models.adapters.classifier import Classifier
from raison.studies.entries import StudyModel, StudySettings
from raison.studies.kinds.audit.spec import AuditPlan
from raison.studies.plans import RunRequest, checked_plan
from tests.tiny import TAGS, build_at_places

TEXTS = ["A boring plot!", "I love this so much, and nobody believed him at all, did they?", "a dull plot", "a film"]
MEASURE = "sufficiency(removal='mask')"


@pytest.fixture(scope="module", name="tagger")
def _tagger() -> Classifier:
    """A tagger that finds entities in the second and the last text."""
    model, tokenizer = build_at_places("bert", AutoModelForTokenClassification, TAGS)
    with torch.no_grad():
        model.classifier.bias[0] = 5.0
    loaded = raison.load(model, tokenizer)
    assert isinstance(loaded, Classifier)
    each = raison.explain(loaded, TEXTS, "occlusion", target="each", progress=False)
    assert [bool(found) for found in each] == [False, True, False, True]
    return loaded


def _data(texts: list[str]) -> Dataset:
    return Dataset("texts", tuple(Row(text, 0, number) for number, text in enumerate(texts)))


def test_the_error_numbers_the_text_and_says_what_works(tagger: Classifier) -> None:
    with pytest.raises(
        InputError, match=r"no entity in text [13] of 4, '.*': use target='each', which gives such a text"
    ):
        raison.explain(tagger, TEXTS, "occlusion", progress=False)
    with pytest.raises(InputError, match=r"in the text, 'a dull plot': name a span, target=\(start, end\)\.$"):
        raison.explain(tagger, "a dull plot", "occlusion")


def test_a_text_of_a_later_batch_has_the_number_that_the_caller_gave_it(tagger: Classifier) -> None:
    texts = [f"a film {number}" for number in range(40)]
    targets: list[tuple[int, int] | None] = [(0, 1)] * 40
    texts[35], targets[35] = TEXTS[2], None
    with pytest.raises(InputError, match="no entity in text 36 of 40, 'a dull plot'"):
        raison.explain(tagger, texts, "random", target=targets, progress=False)


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (5, "target 5 is not an entity"),
        ((0, 1, "XYZ"), "unknown tag 'XYZ'"),
        ((0, 1, ("PER", "PER")), "both tags are PER"),
    ],
)
def test_a_target_that_is_wrong_is_named_with_its_text(tagger: Classifier, target: object, said: str) -> None:
    with pytest.raises(InputError, match=f"^text 4 of 4: {said}"):
        raison.explain(tagger, TEXTS, "occlusion", target=[(0, 1), (0, 1), (0, 1), target], progress=False)
    with pytest.raises(InputError, match=f"^{said}"):
        raison.explain(tagger, TEXTS[3], "occlusion", target=target, progress=False)


def test_a_span_may_have_numbers_of_numpy(tagger: Classifier) -> None:
    plain = raison.explain(tagger, TEXTS[3], "random", target=(0, 1, "PER"), progress=False)
    numbers = raison.explain(tagger, TEXTS[3], "random", target=(np.int64(0), np.int64(1), "PER"), progress=False)
    assert (numbers.place, numbers.scores) == (plain.place, plain.scores)


def test_a_comparison_leaves_them_out_and_says_so(tagger: Classifier, tmp_path: Path) -> None:
    marks = [[(0, 1)], [(0, 1)], [(2, 6)], [(2, 6)]]
    table = raison.compare(tagger, TEXTS, "occlusion", [MEASURE, "auroc"], rationales=marks, progress=False)
    chosen = raison.compare(
        tagger, TEXTS[1::2], "occlusion", [MEASURE, "auroc"], rationales=marks[1::2], progress=False
    )
    assert table.texts == 2
    assert [row.metrics for row in table.rows] == [row.metrics for row in chosen.rows]
    assert table.cautions[0] == "2 of 4 texts were left out, because the model finds no entity there"
    written = [raison.compare(tagger, TEXTS, "occlusion", MEASURE, out=tmp_path, progress=False) for _ in range(2)]
    assert [one.cautions for one in written] == [table.cautions] * 2
    named = raison.compare(tagger, TEXTS, "occlusion", MEASURE, target=[(0, 1), None, None, (0, 2)], progress=False)
    assert named.texts == 3
    with pytest.raises(InputError, match="no entity in any of the 2 texts"):
        raison.compare(tagger, TEXTS[::2], "occlusion", MEASURE)
    with pytest.raises(InputError, match="1 targets for 4 texts"):
        raison.compare(tagger, TEXTS, "occlusion", MEASURE, target=[(0, 1)])
    with pytest.raises(InputError, match="1 entries of rationales"):
        raison.compare(tagger, TEXTS, "occlusion", "auroc", rationales=[[(0, 1)]])


def test_an_audit_leaves_them_out_and_says_so(tagger: Classifier, tmp_path: Path) -> None:
    plan = AuditPlan(randomised=2, changed=2, attacked=2)
    audited = raison.audit(tagger, [*TEXTS, TEXTS[0]], ["occlusion"], out=tmp_path / "a", plan=plan, progress=False)
    assert audited.header.texts == 2
    assert ("2 more texts", "no entity is found there") in audited.left_out
    assert ("1 more text", "a repeat of others") in audited.left_out
    for texts in (TEXTS[:3], TEXTS[::2]):
        with pytest.raises(InputError, match="2 different texts in which the model finds some entity"):
            raison.audit(tagger, texts, ["occlusion"], out=tmp_path / "b", plan=plan, progress=False)
    with pytest.raises(InputError, match="2 different texts, since"):
        raison.audit(tagger, [], ["occlusion"], out=tmp_path / "b", plan=plan, progress=False)


def test_a_file_rejects_their_rows(tagger: Classifier, tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text("\n".join(TEXTS), encoding="utf-8")
    written = raison.explain_file(tagger, file, tmp_path / "out", "occlusion", format="jsonl", progress=False)
    assert [row["text"] for row in written.rows()] == TEXTS[1::2]
    assert [one.row for one in written.rejected] == [0, 2]
    assert all(one.reason.startswith("the model finds no entity in the text, ") for one in written.rejected)


def test_a_study_refuses_them_before_it_runs(tagger: Classifier) -> None:
    request = RunRequest("tags", StudyModel("tags"), ("occlusion",), (MEASURE,), StudySettings())
    plan, reasons = checked_plan(request, tagger, _data(TEXTS))
    assert plan is None
    assert reasons == (
        "the model finds no entity in 2 of 4 texts, the first of them 'A boring plot!': leave them out of the data.",
    )
    assert checked_plan(request, tagger, _data(TEXTS[1::2]))[1] == ()
