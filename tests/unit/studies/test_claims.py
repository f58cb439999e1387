"""Verdicts on claims, from records that are written here."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from raison.core.errors import DataError
from raison.core.results.explanation import Explanation
from raison.jobs.store import RecordStore
from raison.numerics.statistics.paired import Difference, against, difference
from raison.report.tables.writers import claim_text
from raison.runs.judging import FEWEST, JUDGED, Caveat, Learned, Verdict, corrected, finding_of, judged
from raison.runs.run import Record, head_of, open_run
from raison.runs.summary import Costs
from raison.studies.claims import verdicts
from raison.studies.folder import text_digest
from raison.studies.kinds.comparison.results import read as read_study
from tests.unit.runs.test_agreement import BASE

TEXTS = 40
METRICS = [
    {"label": "auroc", "higher_is_better": True, "pool": "mean", "grouped": False},
    {"label": "token_f1(average='micro')", "higher_is_better": True, "pool": "ratio", "grouped": False},
    {"label": "consistency", "higher_is_better": True, "pool": "mean", "grouped": True},
]


def values(shift: float, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(shift, 1.0, TEXTS)


SCORES = {"good": values(2.0, 0), "bad": values(0.0, 1), "same": values(0.0, 2)}
SCORES["bad"][3] = math.nan


def parts(row: str) -> list[tuple[float, float]]:
    hits = {"good": 3.0, "bad": 1.0, "same": 1.0}[row]
    return [(hits + text % 2, 5.0 + text % 3) for text in range(TEXTS)]


def record(row: str, text: int, name: str) -> tuple[Record, Explanation]:
    scores = (float(SCORES[row][text]), parts(row)[text])
    return Record(name, 0, text, scores, Costs(1, 0, 0.1), "yes", "yes", 5), BASE


def write_run(folder: Path, texts: int = TEXTS, names: Sequence[str] = (*SCORES,)) -> None:
    header = {
        "schema": 1,
        "raison": "0",
        "model": "tiny",
        "data": "made up",
        "texts": TEXTS,
        "rows": [{"label": row, "method": row, "seeds": [0], "selected_by": None} for row in names],
        "metrics": METRICS,
        "settings": {"unit": "word", "of": "probability", "seed": 0},
        "versions": {},
    }
    run = open_run(head_of(header), folder)
    for row, name, mean in zip(SCORES, names, (0.9, 0.1, 0.1), strict=True):
        run.add([record(row, text, name) for text in range(texts)])
        run.add_groups(name, 0, "consistency", [(mean + 0.01 * group,) for group in range(4)])


def write_study(folder: Path, claims: list[dict], runs: list[str], limit: int | None = None) -> None:
    text = 'title = "A study | of lines"\n'
    header = {"schema": 1, "name": "s", "digest": text_digest(text), "limit": limit, "versions": {}, "runs": runs}
    folder.mkdir(exist_ok=True)
    (folder / "study.toml").write_text(text)
    (folder / "study.json").write_text(json.dumps({**header, "claims": claims}))


def claim(metric: str, than: str | float, **place: str) -> dict:
    return {"says": "so it is", "metric": metric, "than": than, **place}


def verdict_on(folder: Path, stated: dict) -> Verdict:
    write_run(folder / "m--d")
    write_study(folder, [stated], ["m--d"])
    (found,) = verdicts(read_study(folder))
    return found


@pytest.mark.parametrize(
    ("stated", "finding"),
    [
        (claim("auroc", "bad", above="good"), "holds"),
        (claim("auroc", "bad", below="good"), "fails"),
        (claim("auroc", "good", below="bad"), "holds"),
        (claim("auroc", "good", above="bad"), "fails"),
        (claim("auroc", "same", above="bad"), "undecided"),
        (claim("auroc", "bad", below="bad"), "undecided"),
        (claim("auroc", 1.0, above="good"), "holds"),
        (claim("auroc", 1.0, above="bad"), "fails"),
        (claim("auroc", 0.0, above="same"), "undecided"),
        (claim("token_f1(average='micro')", "bad", above="good"), "holds"),
        (claim("token_f1(average='micro')", 0.9, above="good"), "fails"),
        (claim("consistency", "bad", above="good"), "too few"),
        (claim("auroc", "nobody", above="good"), "missing"),
        (claim("auroc", "good", above="nobody"), "missing"),
        (claim("auprc", "bad", above="good"), "missing"),
        (claim("auroc", "bad", above="good", run="m--e"), "missing"),
    ],
)
def test_finding(tmp_path: Path, stated: dict, finding: str) -> None:
    assert verdict_on(tmp_path, stated).finding == finding


def test_the_difference_is_paired_and_leaves_undefined_texts_out(tmp_path: Path) -> None:
    found = verdict_on(tmp_path, claim("auroc", "bad", above="good"))
    assert found.difference == difference(SCORES["good"][:, None], SCORES["bad"][:, None])
    assert found.difference.count == TEXTS - 1
    assert found.mean == pytest.approx(SCORES["good"].mean())
    assert found.than_mean == pytest.approx(np.nanmean(SCORES["bad"]))


@pytest.mark.parametrize(
    ("stated", "shift", "finding"),
    [
        (claim("auroc", "bad", above="good") | {"by": 1.0}, 1.0, "holds"),
        (claim("auroc", "bad", above="good") | {"by": 3.0}, 3.0, "fails"),
        (claim("auroc", "bad", above="same") | {"by": -1.0}, -1.0, "holds"),
        (claim("auroc", "good", below="bad") | {"by": 1.0}, -1.0, "holds"),
    ],
)
def test_a_claimed_difference_moves_the_other_row(tmp_path: Path, stated: dict, shift: float, finding: str) -> None:
    found = verdict_on(tmp_path, stated)
    row, than = stated.get("above") or stated["below"], stated["than"]
    assert found.difference == difference(SCORES[row][:, None], SCORES[than][:, None] + shift)
    assert (found.finding, found.than) == (finding, f"{than} {shift:+g}")
    assert found.than_mean == pytest.approx(np.nanmean(SCORES[than]) + shift)


def test_pooled_metrics_are_compared_by_their_pool(tmp_path: Path) -> None:
    found = verdict_on(tmp_path, claim("token_f1(average='micro')", "bad", above="good"))
    ratios = [np.sum(parts(row), axis=0) for row in ("good", "bad")]
    expected = [hits / total for hits, total in ratios]
    assert (found.mean, found.than_mean) == pytest.approx(expected)
    assert found.difference.mean == pytest.approx(expected[0] - expected[1])


def test_a_number_has_no_spread_of_its_own(tmp_path: Path) -> None:
    found = verdict_on(tmp_path, claim("auroc", 1.5, above="good"))
    rng = np.random.default_rng(9)
    resampled = rng.choice(SCORES["good"], size=(20_000, TEXTS)).mean(axis=1) - 1.5
    assert found.difference.mean == pytest.approx(SCORES["good"].mean() - 1.5)
    assert (found.difference.low, found.difference.high) == pytest.approx(
        np.quantile(resampled, [0.025, 0.975]), abs=0.02
    )
    assert found.difference.p < 0.05


def test_groups_are_counted_for_metrics_of_groups(tmp_path: Path) -> None:
    assert verdict_on(tmp_path, claim("consistency", "bad", above="good")).difference.count == 4


def test_every_run_is_asked_and_those_not_begun_are_missing(tmp_path: Path) -> None:
    write_run(tmp_path / "m--d")
    write_study(tmp_path, [claim("auroc", "bad", above="good")], ["m--d", "m--e"])
    found = verdicts(read_study(tmp_path))
    assert [(one.run, one.finding) for one in found] == [("m--d", "holds"), ("m--e", "missing")]
    assert found[1].to_dict()["mean"] is None
    json.dumps([one.to_dict() for one in found], allow_nan=False)


def test_groups_that_were_left_out_cannot_be_paired(tmp_path: Path) -> None:
    write_run(tmp_path / "m--d")
    path = tmp_path / "m--d" / "groups.jsonl"
    lines = list(RecordStore(path).read().records)
    lines[0]["values"][1] = []
    path.unlink()
    RecordStore(path).append(lines)
    write_study(tmp_path, [claim("consistency", "bad", above="good")], ["m--d"])
    (found,) = verdicts(read_study(tmp_path))
    assert (found.finding, found.difference.count) == ("missing", 0)


def test_a_run_without_a_text_yet_has_no_table(tmp_path: Path) -> None:
    write_run(tmp_path / "m--d")
    write_run(tmp_path / "m--e", texts=0)
    write_study(tmp_path, [], ["m--d", "m--e"])
    found = read_study(tmp_path).to_dict()
    assert (list(found["runs"]), found["records"], found["wanted"]) == (["m--d"], TEXTS, 2 * TEXTS)


def test_a_single_comparison_states_nothing(tmp_path: Path) -> None:
    write_run(tmp_path)
    assert verdicts(read_study(tmp_path)) == []


def of_values(values: np.ndarray, side: str = "above") -> str:
    return finding_of(against(values[:, None], 0.0), side)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", range(1, FEWEST))
def test_few_values_decide_nothing(count: int) -> None:
    """The interval of two values is from the one to the other: a coin would hold in a quarter of the cases."""
    assert of_values(1 + np.arange(count) / 100) == "too few"
    assert of_values(-1 - np.arange(count) / 100) == "too few"


@pytest.mark.parametrize("count", [FEWEST, 12, 20])
def test_no_difference_is_seldom_decided(count: int) -> None:
    """The interval alone decides 11 % of 8 normal values, 10 % of 12; with the second test it is 5 %."""
    rng = np.random.default_rng(count)
    found = [of_values(rng.normal(size=count)) for _ in range(200)]
    assert sum(finding != "undecided" for finding in found) <= 200 * 0.075


def test_a_second_test_that_disagrees_leaves_a_claim_undecided() -> None:
    gap = Difference(0.2, 0.01, 0.4, 0.04, FEWEST, 0.06)
    assert finding_of(gap, "above") == "undecided"
    assert finding_of(replace(gap, second=0.04), "above") == "holds"
    assert finding_of(replace(gap, second=0.04), "below") == "fails"
    assert finding_of(replace(gap, count=30, second=math.nan), "above") == "holds"


@pytest.mark.parametrize(
    ("learned", "finding", "said"),
    [
        (Learned(0.444, 0.4), "not judged", "accuracy 44.4% on these texts, largest class 40.0%"),
        (Learned(0.5, 0.4), "not judged", "accuracy 50.0% on these texts, largest class 40.0%"),
        (Learned(0.51, 0.4), "holds", ""),
        (Learned(math.nan, 0.4), "holds", "accuracy unknown, largest class 40.0%"),
        (Learned(0.9, math.nan), "holds", "accuracy 90.0% on these texts, largest class unknown"),
    ],
)
def test_a_model_that_did_not_learn_is_not_judged(learned: Learned, finding: str, said: str) -> None:
    stated = Verdict("so it is", "m--d", "auroc", "good", "above", 0.0, "missing")
    found = judged(stated, Difference(0.2, 0.1, 0.3, 0.001, 40), learned)
    assert (found.finding, found.note) == (finding, said)


@pytest.mark.parametrize("caveat", ["exploratory", "by construction"])
def test_a_claim_that_proves_less_says_so(tmp_path: Path, caveat: Caveat) -> None:
    found = verdict_on(tmp_path, claim("auroc", "bad", above="good", caveat=caveat))
    assert found.caveat == caveat
    assert claim_text(found).endswith(f"; {caveat})")
    assert not claim_text(replace(found, caveat=None)).endswith(f"; {caveat})")


def test_labels_of_the_folder_decide_whether_a_run_is_judged(tmp_path: Path) -> None:
    stated = claim("auroc", "bad", above="good")
    (tmp_path / "labels.json").write_text('{"majorities": {"d": 0.5}, "accuracies": {"m--d": 0.55}}')
    found = verdict_on(tmp_path, stated)
    assert (found.finding, found.note) == ("not judged", "accuracy 55.0% on these texts, largest class 50.0%")
    (tmp_path / "labels.json").write_text('{"majorities": {"d": 0.5}, "accuracies": {"m--d": 0.95}}')
    (again,) = verdicts(read_study(tmp_path))
    assert (again.finding, again.note, again.survives) == ("holds", "", True)
    (tmp_path / "labels.json").write_text('{"majorities": 3}')
    with pytest.raises(DataError, match="cannot read .*labels.json.*--resume"):
        verdicts(read_study(tmp_path))


def test_holm_counts_what_was_tested_alone() -> None:
    stated = Verdict("so it is", "m--d", "auroc", "good", "above", 0.0, "missing")
    gaps = [Difference(0.2, 0.1, 0.3, p, 40) for p in (0.01, 0.03, 0.02)]
    found = [judged(stated, gap, Learned(0.9, 0.5)) for gap in gaps]
    failed = judged(stated, gaps[0], Learned(0.5, 0.5))
    told = corrected([*found, failed, stated])
    assert [one.adjusted for one in told[:3]] == pytest.approx([0.03, 0.04, 0.04])
    assert [one.survives for one in told] == [True, True, True, None, None]
    assert all(math.isnan(one.adjusted) for one in told[3:])
    many = corrected([judged(stated, Difference(0.2, 0.1, 0.3, 0.02, 40), Learned(0.9, 0.5))] * 3)
    assert {one.finding for one in many} <= JUDGED
    assert [one.survives for one in many] == [False] * 3
