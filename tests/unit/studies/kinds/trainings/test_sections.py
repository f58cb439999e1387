"""Tables, gains, claims and the page of trainings, from synthetic records: true to the numbers, safe, without torch."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Group

from raison.core.errors import DataError
from raison.report.pages.writing import shown
from raison.report.style.terminal_text import plain
from raison.report.tables.records import Table
from raison.studies.claims import verdicts
from raison.studies.kinds.trainings.gains import mixed, transferred
from raison.studies.kinds.trainings.records import ExplanationCost, TrainingRecord, TrainingRuns
from raison.studies.kinds.trainings.results import read as read_trainings
from raison.studies.kinds.trainings.sections import accuracy_table, gain_tables, metric_tables, rate_tables, sections
from raison.studies.kinds.trainings.tables import ColumnKey, deviation, scores
from raison.studies.reports import write

SEEDS, TASKS, TEXTS = (0, 1, 2), ("imdb", "sst2"), 12
COMP, SUFF, CONS = "aopc_comprehensiveness", "aopc_sufficiency", "consistency"
METRICS = [
    {"label": COMP, "higher_is_better": True, "pool": "mean", "grouped": False},
    {"label": SUFF, "higher_is_better": False, "pool": "mean", "grouped": False},
    {"label": CONS, "higher_is_better": True, "pool": "mean", "grouped": True},
]
QUALITY = {"lime": 0.2, "random": 0.0, "comp": 0.6, "suff": 0.4, "comp & <suff>": 0.5, "comp 3e-4": 0.55, "few": 0.3}
TRAININGS = {
    "comp": (["comp"], {}),
    "suff": (["suff"], {}),
    "comp & <suff>": (["comp", "suff"], {}),
    "comp 3e-4": (["comp"], {"learning_rate": 3e-4}),
    "few": (["comp"], {"texts": 10}),
}
FILE = 'schema = 1\nkind = "trainings"\ntitle = "Two <tasks>"\nabout = "Synthetic & small."\n'
CLAIMS = [
    {"says": "comp beats lime", "metric": COMP, "above": "comp", "than": "lime"},
    {"says": "comp is consistent", "metric": CONS, "above": "comp", "than": "lime", "task": "sst2"},
    {"says": "random is above a half", "metric": COMP, "above": "random", "than": 0.5, "task": "sst2"},
    {"says": "training costs accuracy", "metric": "accuracy", "below": "comp", "than": "plain", "task": "imdb"},
    {"says": "nobody trained this", "metric": COMP, "above": "gone", "than": "lime", "task": "imdb"},
]


def header() -> dict[str, Any]:
    settings = {"norm": "softmax", "learning_rate": 3e-5, "decay": 0.5, "texts": None, "criteria": []}
    rows = [{"name": "plain", "kind": "plain", "method": "", "criteria": [], "settings": {}, "tasks": TASKS}]
    rows += [
        {"name": name, "kind": "posthoc", "method": name, "criteria": [], "settings": {}, "tasks": TASKS}
        for name in ("lime", "random")
    ]
    rows += [
        {"name": name, "kind": "training", "method": "ivra", "criteria": criteria, "tasks": TASKS,
         "settings": settings | {"criteria": criteria} | further}
        for name, (criteria, further) in TRAININGS.items()
    ]  # fmt: skip
    data = {"train": {"name": "invented", "rows": 40, "sha256": "0"}, "dev": None, "test": None}
    return {
        "schema": 1, "kind": "trainings", "name": "synthetic", "digest": "abc", "limit": None, "seeds": SEEDS,
        "metrics": METRICS, "rows": rows, "claims": CLAIMS, "gains": {"comp": COMP, "suff": SUFF, "cons": CONS},
        "tasks": [
            {"name": "imdb", "base": "minilm", "kind": "classification", "also": ["sst2"], "data": data},
            {"name": "sst2", "base": "minilm", "kind": "classification", "also": [], "data": data},
        ],
        "versions": {"raison": "1"},
    }  # fmt: skip


def record(row: dict[str, Any], place: ColumnKey, seed: int) -> TrainingRecord:
    name = row["name"]
    rng = np.random.default_rng([*name.encode(), *place.test.encode(), seed])
    level = QUALITY.get(name, 0.0) - (0.1 if place.task != place.test else 0)
    values = level + 0.05 * rng.normal(size=(2, TEXTS))
    right = tuple(int(text < (11 if name == "plain" else 7 + seed % 2)) for text in range(TEXTS))
    explained = row["kind"] != "plain"
    losses = {c: [1.0, 0.7 - level / 4, 0.5 - level / 4 + seed / 40] for c in (*row["criteria"], "task")}
    return TrainingRecord(
        task=place.task,
        test=place.test,
        row=name,
        kind=row["kind"],
        seed=seed,
        method=row["method"],
        settings=row["settings"],
        texts=row["settings"].get("texts") or 40,
        scores={COMP: tuple(values[0]), SUFF: tuple(0.5 - values[1])} if explained else {},
        groups={CONS: tuple((float(value),) for value in level + 0.1 * rng.normal(size=3))} if explained else {},
        correct=right,
        history={"losses": losses} if row["kind"] == "training" else {},
        training_seconds=20.0 + seed + (row["settings"].get("texts") or 40),
        explaining=ExplanationCost((0.1,) * TEXTS, (5.0,) * TEXTS, (0.0,) * TEXTS) if explained else ExplanationCost(),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return fill(tmp_path_factory.mktemp("report"))


def fill(place: Path) -> Path:
    """What a study of trainings writes, of two processes."""
    whole = header()
    (place / "trainings.json").write_text(json.dumps(whole))
    (place / "study.toml").write_text(FILE)
    everywhere = [ColumnKey("imdb", "imdb"), ColumnKey("imdb", "sst2"), ColumnKey("sst2", "sst2")]
    lines = [record(row, where, seed).to_dict() for row in whole["rows"] for where in everywhere for seed in SEEDS]
    for number, part in ((1, lines[::2]), (2, lines[1::2])):
        (place / f"trainings-{number}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in part))
    return place


@pytest.fixture(scope="module")
def study(folder: Path) -> TrainingRuns:
    return read_trainings(folder)


def table(study: TrainingRuns, row: str, place: ColumnKey, metric: str) -> np.ndarray:
    """(seeds, texts or groups), read from the records themselves."""
    found = [study.records[place.task, place.test, row, seed] for seed in SEEDS]
    if metric == CONS:
        return np.array([[value for group in one.groups[CONS] for value in group] for one in found])
    return np.array([one.correct if metric == "accuracy" else one.scores[metric] for one in found], dtype=float)


def cell(grid: Table, row: str, column: str) -> Any:
    return dict(grid.rows)[row][grid.head.index(column) - 1]


def test_records_survive_json(study: TrainingRuns) -> None:
    assert len(study.records) == len(study.wanted) == 8 * 3 * 3
    one = study.records["imdb", "imdb", "comp", 0]
    assert TrainingRecord.from_dict(json.loads(json.dumps(one.to_dict()))) == one
    assert study.dropped == 0


@pytest.mark.parametrize("metric", [COMP, SUFF, CONS, "accuracy"])
def test_values_are_means_over_seeds_and_texts(study: TrainingRuns, metric: str) -> None:
    place = ColumnKey("sst2", "sst2")
    found, expected = scores(study, "comp", place, metric), table(study, "comp", place, metric)
    assert found is not None
    assert found.summary.mean == pytest.approx(expected.mean())
    assert deviation(found) == pytest.approx(expected.mean(axis=1).std(ddof=1))
    assert found.summary.low <= found.summary.mean <= found.summary.high
    # Of single texts the seeds are averaged first; groups stay as they are.
    assert len(found.values) == (9 if metric == CONS else TEXTS)


def test_the_best_of_a_column_is_bold_whichever_way_is_better(study: TrainingRuns) -> None:
    grids = {grid.title: grid for grid in metric_tables(study)}
    for title in (f"{COMP} ↑", f"{SUFF} ↓"):
        assert [cell(grids[title], row, "imdb").rank for row in ("comp", "comp 3e-4", "lime")] == [1, 2, 0]
    assert cell(grids[f"{COMP} ↑"], "comp", "imdb").seeds.startswith("sd ")


def test_accuracy_has_its_difference_from_the_plain_model(study: TrainingRuns) -> None:
    found = cell(accuracy_table(study), "comp", "imdb")
    # 7, 8 and 7 of 12 are right, and 11 of the plain model.
    assert found.mean == f"{100 * 22 / 36:.1f}"
    assert found.interval.startswith(f"-{100 * (33 - 22) / 36:.1f} [")
    assert cell(accuracy_table(study), "plain", "imdb").mean == "91.7"


def test_gains_are_over_the_model_trained_for_the_criterion_alone(study: TrainingRuns) -> None:
    found = next(one for one in mixed(study) if "comp & <suff>" in one.columns)
    assert found.criteria == ("comp", "suff")
    for criterion, metric, sign in (("comp", COMP, 1), ("suff", SUFF, -1)):
        gains = []
        for task in TASKS:
            a, b = (table(study, row, ColumnKey(task, task), metric).mean() for row in (criterion, "comp & <suff>"))
            gains.append(sign * (b - a) / abs(a))
        place = found.columns.index("comp & <suff>")
        gain = found.gains[found.criteria.index(criterion)][place]
        assert gain.mean == pytest.approx(sum(gains) / 2)
        assert gain.count == 6
        assert math.isnan(found.gains[found.criteria.index(criterion)][found.columns.index(criterion)].mean)


def test_transfer_is_the_gain_of_training_on_the_data_itself(study: TrainingRuns) -> None:
    (found,) = transferred(study)
    home, away = (table(study, "comp", ColumnKey(task, "sst2"), COMP).mean() for task in ("sst2", "imdb"))
    gain = found.gains[0][found.columns.index("comp")]
    assert gain.mean == pytest.approx((home - away) / abs(away))
    assert any("imdb on sst2" in grid.title for grid in gain_tables(study))


def test_rates_stand_beside_each_other(study: TrainingRuns) -> None:
    grid = rate_tables(study)[0]
    assert [name for name, _ in grid.rows] == ["3e-05, 0.5", "0.0003, 0.5"]
    first = table(study, "comp", ColumnKey("imdb", "imdb"), COMP).mean()
    assert grid.rows[0][1][0].mean == f"{first:.3f}"


def test_claims_are_judged_by_paired_differences(study: TrainingRuns) -> None:
    found = {(one.says, one.run): one for one in verdicts(study)}
    assert len(found) == 6
    pair = found["comp beats lime", "imdb"]
    gaps = table(study, "comp", ColumnKey("imdb", "imdb"), COMP) - table(study, "lime", ColumnKey("imdb", "imdb"), COMP)
    assert (pair.finding, pair.difference.count) == ("holds", TEXTS)
    assert pair.difference.mean == pytest.approx(gaps.mean())
    # Three groups of texts under three seeds: every seed judges the same groups.
    assert found["comp is consistent", "sst2"].difference.count == 3
    assert found["random is above a half", "sst2"].finding == "fails"
    assert found["training costs accuracy", "imdb"].finding == "holds"
    assert found["nobody trained this", "imdb"].finding == "missing"


def test_page_is_whole_and_escaped(folder: Path, tmp_path: Path) -> None:
    page = write(folder, tmp_path)
    text = page.read_text()
    for words in ("Two &lt;tasks&gt;", "comp &amp; &lt;suff&gt;", "Losses", "Time and texts", "loss comp", "Claims"):
        assert words in text
    assert "<suff>" not in text.replace("&lt;suff&gt;", "")
    assert "Unfinished" not in text
    assert text.count("<svg") >= 2 * 3
    assert "| comp & " not in (tmp_path / "tables.md").read_text()
    latex = (tmp_path / "tables.tex").read_text()
    assert latex.count(r"\begin{table}") == latex.count(r"\end{table}") == len(re_titles(tmp_path))


def re_titles(folder: Path) -> list[str]:
    return [line for line in (folder / "tables.md").read_text().splitlines() if line.startswith("### ")]


def test_an_unfinished_study_says_so_and_shows_what_there_is(folder: Path, tmp_path: Path) -> None:
    for name in ("trainings.json", "study.toml", "trainings-1.jsonl"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    with (tmp_path / "trainings-1.jsonl").open("a") as file:
        file.write('{"task": "imdb", "te')
    text = write(tmp_path, draw=False).read_text()
    assert "Unfinished: 36 of 72 records" in text
    assert "1 broken line in the records" in text
    assert "comp" in plain(Group(*shown(sections(read_trainings(tmp_path)))))


def test_a_study_without_any_record_has_a_page(folder: Path, tmp_path: Path) -> None:
    for name in ("trainings.json", "study.toml"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    assert "Unfinished: 0 of 72" in write(tmp_path).read_text()
    assert {one.finding for one in verdicts(read_trainings(tmp_path))} == {"missing"}


def test_another_folder_or_a_newer_version_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="contains no study of trainings"):
        read_trainings(tmp_path)
    (tmp_path / "study.toml").write_text(FILE)
    (tmp_path / "trainings.json").write_text(json.dumps(header() | {"schema": 2}))
    with pytest.raises(DataError, match="newer version"):
        read_trainings(tmp_path)


def test_report_needs_no_torch(folder: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from raison.studies.reports import write;"
        f"write(Path({str(folder)!r}), Path({str(tmp_path)!r}), False); print('torch' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
