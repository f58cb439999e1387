"""Studies: refused as a whole before anything runs; interrupted anywhere and resumed, equal to one that was not."""

import json
import os
import random
import re
import shutil
import signal
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner

from raison.cli import study as study_commands
from raison.core.errors import DataError
from raison.jobs import disk
from raison.judging.estimate import estimate_plan
from raison.runs.agreement import read_agreement
from raison.runs.table import comparison
from raison.studies.claims import verdicts
from raison.studies.data_loading import load_rows
from raison.studies.file import Study, StudyError, read
from raison.studies.kinds.comparison.results import read as read_study
from raison.studies.reports import write
from raison.studies.runner import examine, run
from tests.apart import started
from tests.conftest import ALL
from tests.integration.studies.two_models import STUDY, TEXTS, changed
from tests.interruptions import Cut, Interruption, content, tables
from tests.patience import PATIENCE

ROWS, SEEDS = 5, 2


@pytest.fixture(scope="module")
def expected(whole: Path) -> tuple[object, object]:
    return content(whole), tables(whole)


def test_what_a_study_writes(whole: Path) -> None:
    study = read_study(whole)
    assert (study.title, study.header.name, list(study.runs)) == (
        "Two tiny models",
        whole.parent.name,
        ["bert--words", "electra--words"],
    )
    assert study.text == STUDY
    assert json.loads((whole / "study.json").read_text())["limit"] is None
    for found in study.runs.values():
        assert found.dropped == 0
        assert len(comparison(found).rows) == ROWS
        pairs = read_agreement(found.folder)
        assert len(pairs) == 6, "four rows that no metric selected"
        assert all(pair.spearman.count <= len(TEXTS) for pair in pairs)
        # Labels, not predictions, were explained.
        assert {record.target for record in found.records.values()} == {"negative", "positive"}
    findings = verdicts(study)
    assert [one.run for one in findings] == ["bert--words", "electra--words", "bert--words"]
    # Random weights: no claim about them is judged, because the model has not learned its task.
    assert findings[2].finding == "not judged"
    assert "accuracy" in findings[2].note


def test_interrupted_at_random_moments_then_resumed(
    counted: tuple[Path, int], expected: tuple[object, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = random.Random(11).sample(range(1, counted[1] + 1), 10 if ALL else 2)
    for moment in moments:
        out, cut = tmp_path / str(moment), Interruption(moment)
        monkeypatch.setattr(disk, "os", cut.as_os())
        with pytest.raises(Cut):
            run("study.toml", out, progress=cut.advance)
        monkeypatch.setattr(disk, "os", os)
        run("study.toml", out, resume=True, progress=False)
        assert (content(out), tables(out)) == expected


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("awaited", ["bert--words/records.jsonl", "electra--words/run.json"])
def test_killed_with_signal_9_then_resumed(expected: tuple[object, object], tmp_path: Path, awaited: str) -> None:
    out = tmp_path / "out"
    process = started(partial(run, "study.toml", out, progress=False))
    deadline = time.monotonic() + PATIENCE
    while not (out / awaited).exists() and process.is_alive():
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    run("study.toml", out, resume=True, progress=False)
    assert (content(out), tables(out)) == expected


@pytest.mark.parametrize("file", ["records.jsonl", "explanations.jsonl", "groups.jsonl"])
def test_a_line_that_was_cut_is_done_again(
    whole: Path, expected: tuple[object, object], tmp_path: Path, file: str
) -> None:
    shutil.copytree(whole, tmp_path / "out")
    path = tmp_path / "out" / "bert--words" / file
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-3]) + lines[-3][: len(lines[-3]) // 2])
    if file == "explanations.jsonl":
        # A kill while these are written leaves no records of them: those come last.
        kept = path.with_name("records.jsonl").read_bytes().splitlines(keepends=True)[:-3]
        path.with_name("records.jsonl").write_bytes(b"".join(kept))
    else:
        assert read_study(tmp_path / "out").runs["bert--words"].dropped == 1
    run("study.toml", tmp_path / "out", resume=True, progress=False)
    assert (content(tmp_path / "out"), tables(tmp_path / "out")) == expected


def test_a_folder_that_holds_something_is_not_touched(whole: Path, place: Path) -> None:
    before = content(whole)
    with pytest.raises(DataError, match="--resume"):
        run("study.toml", whole)
    with pytest.raises(DataError, match="contains this study with all rows: use the same limit"):
        run("study.toml", whole, limit=4, resume=True)
    (place / "other.toml").write_text(STUDY.replace("Two tiny", "Other"))
    with pytest.raises(DataError, match="holds another study"):
        run("other.toml", whole, resume=True)
    with pytest.raises(DataError, match="holds a comparison, not a study of methods"):
        run("study.toml", whole / "bert--words")
    assert content(whole) == before


def test_data_that_changed_is_found_before_the_study_goes_on(place: Path, tmp_path: Path) -> None:
    run("study.toml", tmp_path / "out", limit=4, progress=False)
    path = place / "words.jsonl"
    original = path.read_text()
    try:
        path.write_text(original.replace(TEXTS[0], "a new text"))
        with pytest.raises(DataError, match=r"holds another run \(it differs in data\)"):
            run("study.toml", tmp_path / "out", limit=4, resume=True)
    finally:
        path.write_text(original)


def test_a_limited_study_says_so(whole: Path, tmp_path: Path) -> None:
    run("study.toml", tmp_path / "out", limit=5, progress=False)
    assert json.loads((tmp_path / "out" / "study.json").read_text())["limit"] == 5
    assert [comparison(found).texts for found in read_study(tmp_path / "out").runs.values()] == [5, 5]


def refused(place: Path, out: Path, *changes: tuple[str, str]) -> str:
    with pytest.raises(StudyError) as caught:
        run(changed(place, *changes), out)
    assert not out.exists()
    return str(caught.value)


def test_everything_that_models_and_data_refuse_is_said_at_once(place: Path, tmp_path: Path) -> None:
    more = (
        '[data.unmarked]\nsource = "unmarked.tsv"\n[data.topics]\nsource = "topics.tsv"\n[data.long]\n'
        'source = "long.tsv"\n[data.gone]\nsource = "gone.tsv"\n[models.nobody]\nname = "nowhere"\n\n[[claims]]'
    )
    runs = [("bert", "unmarked"), ("electra", "topics"), ("bert", "long"), ("bert", "gone"), ("nobody", "words")]
    listed = "".join(f'[[runs]]\nmodel = "{model}"\ndata = "{data}"\n' for model, data in runs)
    change = (STUDY[STUDY.index("[[claims]]") :], more.removesuffix("[[claims]]") + listed)
    (place / "nowhere").mkdir(exist_ok=True)
    found = refused(place, tmp_path / "out", change)
    assert "[data.gone]: gone.tsv is not a file." in found
    assert "[models.nobody]: the folder 'nowhere' holds no model" in found
    assert "model 'bert' on data 'unmarked': auroc needs rationales, which the data does not have" in found
    assert "model 'bert' on data 'unmarked': token_f1(average='micro') needs rationales" in found
    assert "model 'electra' on data 'topics'" in found
    assert "the label 'sea' is none of negative, so so, positive. Name the model's classes as in the data" in found
    assert "model 'bert' on data 'long': 1 of 2 texts of" in found
    assert "reads at most 128" in found


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ([('"occlusion", "kernel', '"oclusion", "kernel')], "methods: unknown method 'oclusion'"),
        ([("agreement = true", "agrement = true")], "unknown key 'agrement'. Did you mean 'agreement'?"),
        ([('labels = ["negative", "so so", "positive"]', 'labels = ["a", "b"]')], "names 2 classes, and electra has 3"),
        ([('target = "label"', 'target = "happy"')], "unknown label 'happy'"),
        ([('target = "label"', 'removal = "unk"\ntarget = "negatve"')], "Did you mean 'negative'?"),
    ],
)
def test_bad_input_makes_no_folder(place: Path, tmp_path: Path, changes: list[tuple[str, str]], said: str) -> None:
    assert said in refused(place, tmp_path / "out", *changes)


def test_named_labels_that_the_model_lacks(place: Path, tmp_path: Path) -> None:
    """Numeric labels would fit any model with enough classes, but their names are known."""
    words = 'source = "words.jsonl"\nknown_features = { words = ["red", "green"] }'
    found = refused(place, tmp_path / "out", ('source = "words.jsonl"', words))
    assert "the labels of" in found
    assert "(red, green) are not the classes of bert (negative, neutral, positive)" in found


def test_known_features_and_samples(place: Path) -> None:
    words = 'source = "words.jsonl"\nlimit = 8\nsample = 3\nknown_features = { words = ["negative", "positive"] }'
    study = read(changed(place, ('source = "words.jsonl"', words)))
    drawn = load_rows(study.spec.grid.data["words"], None)
    assert len(drawn) == 8
    numbers = [row.number for row in drawn.rows]
    assert numbers == sorted(set(numbers)) != list(range(1, 9))
    assert all(row.text.endswith(("negative", "positive")) and len(row.rationales) == 1 for row in drawn.rows)
    fewer = load_rows(study.spec.grid.data["words"], 6)
    assert set(fewer.rows) < set(drawn.rows)
    assert load_rows(study.spec.grid.data["words"], None) == drawn


def estimates(study: Study) -> list:
    return [estimate_plan(plan) for _, plan in examine(study).work()]


def test_the_estimate_knows_seeds_choices_groups_and_shifts(place: Path) -> None:
    few = ('source = "words.jsonl"', 'source = "words.jsonl"\nlimit = 4')
    base, *_ = estimates(read(changed(place, few)))
    assert set(base.forwards) == {
        "occlusion",
        "kernel_shap(samples=12)",
        "random(draws=3)",
        "random",
        "random(draws=3) by comprehensiveness",
    }
    units = [len(text.split()) for text in TEXTS[:4]]
    # One run with each of two seeds, at most 2^n coalitions.
    assert base.forwards["kernel_shap(samples=12)"] == 2 * sum(min(12, 2**count) for count in units)
    assert base.forwards["occlusion"] == sum(count + 1 for count in units)
    # Three maps a seed are looked at, each by one keep.
    assert base.forwards["random(draws=3) by comprehensiveness"] == 4 * 2 * 3
    shifted, *_ = estimates(read(changed(place, few, ('"auroc", ', '"max_sensitivity(samples=2)", "auroc", '))))
    again = sum(base.forwards[label] for label in ("occlusion", "kernel_shap(samples=12)"))
    assert shifted.metric_forwards - base.metric_forwards == 2 * again
    single, *_ = estimates(read(changed(place, few, (', "consistency(batch=8)"', ""))))
    # The texts of a group are read once for all rows and seeds.
    assert base.metric_forwards - single.metric_forwards == 4


def test_a_run_never_costs_more_than_estimated(whole: Path) -> None:
    for found, estimate in zip(read_study(whole).runs.values(), estimates(read("study.toml")), strict=True):
        for row in comparison(found).rows:
            seeds = 1 if row.method == "occlusion" else SEEDS
            spent = row.evaluations.mean * len(TEXTS) * seeds
            assert spent <= estimate.forwards[row.method] + 1e-9


@pytest.fixture
def command() -> Callable[..., str]:
    def call(*words: str) -> str:
        found = CliRunner().invoke(study_commands.app, list(words), catch_exceptions=False)
        assert found.exit_code == 0
        return found.stdout

    return call


def test_command_line(command: Callable[..., str], place: Path) -> None:
    assert "study.toml can be run." in command("check", "study.toml", "--limit", "3")
    assert set(json.loads(command("check", "study.toml", "--limit", "3", "--json"))["runs"]) == {
        "bert--words",
        "electra--words",
    }
    assert not (place / "runs").exists(), "checking writes nothing"
    printed = command("run", "study.toml", "--limit", "3")
    folder = Path("runs") / place.name
    assert "comprehensiveness" in printed
    assert "no random map agrees with people" in printed
    assert str(folder) in printed
    with pytest.raises(DataError, match="--resume"):
        command("run", "study.toml", "--limit", "3")
    path = folder / "bert--words" / "records.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    found = json.loads(command("run", "study.toml", "--limit", "3", "--resume", "--json"))
    assert (found["folder"], set(found["runs"])) == (str(folder), {"bert--words", "electra--words"})
    assert [verdict["run"] for verdict in found["verdicts"]] == ["bert--words", "electra--words", "bert--words"]
    # With other words the study is the same, and goes on in its folder.
    (place / "worded.toml").write_text(STUDY.replace("no random map agrees", "hardly any random map agrees"))
    assert "2 claims, 0 new, 0 withdrawn" in command("restate", "worded.toml", str(folder))
    again = json.loads(command("run", "worded.toml", "--out", str(folder), "--limit", "3", "--resume", "--json"))
    assert again["verdicts"][2] == found["verdicts"][2] | {"says": "hardly any random map agrees with people"}
    assert again["withdrawn"] == []


def test_a_run_leaves_out_methods(place: Path, tmp_path: Path) -> None:
    runs = """
[[runs]]
model = "bert"
data = "words"

[[runs]]
model = "electra"
data = "words"
without = ["occlusion"]
"""
    file = place / "without.toml"
    file.write_text(STUDY + runs)
    found = read_study(run(file, tmp_path / "out", limit=4, progress=False))
    rows = {name: {row for row, _, _ in of_run.records} for name, of_run in found.runs.items()}
    assert "occlusion" in rows["bert--words"]
    assert rows["bert--words"] - rows["electra--words"] == {"occlusion"}
    assert [(one.says, one.run) for one in verdicts(found)] == [
        ("occlusion is more faithful than random", "bert--words"),
        ("no random map agrees with people", "bert--words"),
    ]
    write(tmp_path / "out")
    file.write_text(STUDY + runs.replace('["occlusion"]', '["oclusion"]'))
    with pytest.raises(StudyError, match=re.escape("[[runs]] number 2: unknown method 'oclusion'")):
        read(file)
