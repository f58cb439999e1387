"""Verdicts on claims, from records that are written here."""

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from raison.core.explanation import Explanation
from raison.numerics.paired import difference
from raison.runs.claims import Verdict, verdicts
from raison.runs.run import Record, open_run
from raison.runs.study import digest_of, read_study
from raison.runs.summary import Costs
from raison.studies.findings import page
from tests.unit.test_run_agreement import BASE

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


def record(row: str, text: int) -> tuple[Record, Explanation]:
    scores = (float(SCORES[row][text]), parts(row)[text])
    return Record(row, 0, text, scores, Costs(1, 0, 0.1), "yes", "yes", 5), BASE


def write_run(folder: Path, texts: int = TEXTS) -> None:
    header = {
        "schema": 1,
        "raison": "0",
        "model": "tiny",
        "data": "made up",
        "texts": TEXTS,
        "rows": [{"label": row, "method": row, "seeds": [0], "selected_by": None} for row in SCORES],
        "metrics": METRICS,
        "settings": {"unit": "word", "of": "probability", "seed": 0},
        "versions": {},
    }
    run = open_run(header, folder)
    for row, mean in zip(SCORES, (0.9, 0.1, 0.1), strict=True):
        run.add([record(row, text) for text in range(texts)])
        run.add_groups(row, 0, "consistency", [(mean + 0.01 * group,) for group in range(4)])


def write_study(folder: Path, claims: list[dict], runs: list[str], limit: int | None = None) -> None:
    text = 'title = "A study | of lines"\n'
    header = {"schema": 1, "name": "s", "digest": digest_of(text), "limit": limit, "versions": {}, "runs": runs}
    folder.mkdir(exist_ok=True)
    (folder / "study.toml").write_text(text)
    (folder / "study.json").write_text(json.dumps({**header, "claims": claims}))


def claim(metric: str, than: str | float, **place: str) -> dict:
    return {"says": "so it is", "metric": metric, "than": than, **place}


def judged(folder: Path, stated: dict) -> Verdict:
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
        (claim("consistency", "bad", above="good"), "holds"),
        (claim("auroc", "nobody", above="good"), "missing"),
        (claim("auroc", "good", above="nobody"), "missing"),
        (claim("auprc", "bad", above="good"), "missing"),
        (claim("auroc", "bad", above="good", run="m--e"), "missing"),
    ],
)
def test_finding(tmp_path: Path, stated: dict, finding: str) -> None:
    assert judged(tmp_path, stated).finding == finding


def test_the_difference_is_paired_and_leaves_undefined_texts_out(tmp_path: Path) -> None:
    found = judged(tmp_path, claim("auroc", "bad", above="good"))
    assert found.difference == difference(SCORES["good"][:, None], SCORES["bad"][:, None])
    assert found.difference.count == TEXTS - 1
    assert found.mean == pytest.approx(SCORES["good"].mean())
    assert found.than_mean == pytest.approx(np.nanmean(SCORES["bad"]))


def test_pooled_metrics_are_compared_by_their_pool(tmp_path: Path) -> None:
    found = judged(tmp_path, claim("token_f1(average='micro')", "bad", above="good"))
    ratios = [np.sum(parts(row), axis=0) for row in ("good", "bad")]
    expected = [hits / total for hits, total in ratios]
    assert (found.mean, found.than_mean) == pytest.approx(expected)
    assert found.difference.mean == pytest.approx(expected[0] - expected[1])


def test_a_number_has_no_spread_of_its_own(tmp_path: Path) -> None:
    found = judged(tmp_path, claim("auroc", 1.5, above="good"))
    rng = np.random.default_rng(9)
    resampled = rng.choice(SCORES["good"], size=(20_000, TEXTS)).mean(axis=1) - 1.5
    assert found.difference.mean == pytest.approx(SCORES["good"].mean() - 1.5)
    assert (found.difference.low, found.difference.high) == pytest.approx(
        np.quantile(resampled, [0.025, 0.975]), abs=0.02
    )
    assert math.isnan(found.difference.p)


def test_groups_are_counted_for_metrics_of_groups(tmp_path: Path) -> None:
    assert judged(tmp_path, claim("consistency", "bad", above="good")).difference.count == 4


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
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0]["values"][1] = []
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    write_study(tmp_path, [claim("consistency", "bad", above="good")], ["m--d"])
    (found,) = verdicts(read_study(tmp_path))
    assert (found.finding, found.difference.count) == ("undecided", 0)


def test_a_single_comparison_states_nothing(tmp_path: Path) -> None:
    write_run(tmp_path)
    assert verdicts(read_study(tmp_path)) == []


def test_findings_page(tmp_path: Path) -> None:
    write_run(tmp_path / "a" / "m--d")
    write_study(tmp_path / "a", [claim("auroc", "bad", above="good")], ["m--d"])
    write_run(tmp_path / "b" / "m--d", texts=20)
    write_study(tmp_path / "b", [claim("auroc", 0.5, above="good")], ["m--d", "m--e"], limit=TEXTS)
    text = page([tmp_path / "b", tmp_path / "a"], tmp_path)
    rows = [line for line in text.splitlines() if line.startswith("| A study")]
    assert len(rows) == 3
    # A bar in a title must not add a column.
    assert {line.replace("\\|", "").count("|") for line in rows} == {11}
    assert "| **holds** | auroc |" in rows[0]
    assert "`raison study run a/study.toml`" in rows[0]
    assert f"{SCORES['good'].mean():.4f} (good)" in rows[0]
    assert "not finished" not in rows[0]
    assert all(f"(first {TEXTS} rows only, not finished)" in row and "b/study.toml" in row for row in rows[1:])
    assert "**missing**" in rows[2]
    assert "generated" in text


def test_verdicts_need_no_torch() -> None:
    code = "import sys, raison.runs.claims, raison.runs.agreement; print('torch' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
