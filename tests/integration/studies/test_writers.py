"""A comparison study whose model writes: checked as a whole, run, resumed, judged and reported; and the commands."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from raison.cli import app
from raison.core.errors import InputError
from raison.judging import plan as plans
from raison.models.adapters.writing.generator import Generator
from raison.models.tokens.continuation import Output, TokenizedPrompt
from raison.runs.table import comparison
from raison.studies.file import StudyError, read
from raison.studies.kinds.comparison.results import read as read_study
from raison.studies.reports import write
from raison.studies.runner import examine, run
from tests.tiny import build_language_model

SOURCES = {"sea": "the old sailor told a story. it was quiet.", "plot": "a dull plot. nobody believed him."}
ROWS = [
    {"question": "who told it?", "sources": SOURCES, "answer": "the sailor.", "gold": "sea"},
    {"question": "what plot?", "sources": SOURCES, "answer": "a dull one.", "gold": "plot"},
]
STUDY = """
schema = 1
title = "Sources"
methods = ["occlusion", "hierarchical_occlusion"]
metrics = ["log_probability_drop", "linear_datamodeling_score(samples=8)", "precision_at_top"]
agreement = true
[models.writer]
name = "llama"
[data.rows]
source = "rows.jsonl"
template = "plain"
[settings]
unit = "part"
[[claims]]
says = "leaving out is better than chance"
above = "occlusion"
than = "random"
metric = "log_probability_drop"
"""


@pytest.fixture(scope="module")
def writing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("writing")
    model, tokenizer = build_language_model("llama")
    model.save_pretrained(folder / "llama")
    tokenizer.save_pretrained(folder / "llama")
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (folder / "words.tsv").write_text("a text\t0\nanother text\t1\n")
    (folder / "study.toml").write_text(STUDY)
    return folder


@pytest.fixture(autouse=True)
def _in_its_folder(writing: Path, _there: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(writing)


def test_a_study_of_a_model_that_writes(tmp_path: Path) -> None:
    run("study.toml", tmp_path / "half", limit=1, progress=False)
    run("study.toml", tmp_path / "out", progress=False)
    run("study.toml", tmp_path / "out", resume=True, progress=False)
    results = read_study(tmp_path / "out")
    [found] = results.runs.values()
    table = comparison(found)
    assert [row.method for row in table.rows] == ["occlusion", "hierarchical_occlusion", "random"]
    assert table.texts == 2
    assert found.header.outputs == "statement"
    by_metric = {one.metric: one.values for one in table.rows[0].metrics}
    assert set(by_metric) == {"log_probability_drop", "linear_datamodeling_score(samples=8)", "precision_at_top"}
    assert set(by_metric["precision_at_top"]) <= {0.0, 1.0}
    # What leaving out a source does is what the metric measures: no order is better.
    assert (
        by_metric["log_probability_drop"]
        >= {one.metric: one.values for one in table.rows[2].metrics}["log_probability_drop"]
    )
    assert write(tmp_path / "out", draw=False).exists()
    examined = examine(read("study.toml"))
    [(name, plan)] = examined.work()
    assert (name, len(plan.texts), plan.rationales != ()) == ("writer--rows", 2, True)


def test_an_answer_that_no_row_gives_is_written_twice_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once to check the study, and once to run it, however many chunks its texts make."""
    rows = [{"question": f"who told it, {number}?", "sources": SOURCES} for number in range(6)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    shorter = STUDY.replace(', "linear_datamodeling_score(samples=8)", "precision_at_top"', "")
    shorter = shorter.replace("agreement = true", "").replace('"llama"', json.dumps(str(Path("llama").absolute())))
    (tmp_path / "study.toml").write_text(shorter)
    written: list[str] = []

    def continuation(writer: Generator, prompt: TokenizedPrompt, new_tokens: int) -> Output:
        written.append(prompt.text)
        return own(writer, prompt, min(new_tokens, 4))

    own = Generator.continuation
    monkeypatch.setattr(Generator, "continuation", continuation)
    monkeypatch.setattr(plans, "MOST_TOGETHER", 2)
    run(tmp_path / "study.toml", tmp_path / "out", progress=False)
    assert len(set(written)) == 6
    assert len(written) == 12


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('unit = "part"', 'unit = "word"', "unit='part'"),
        ('"precision_at_top"]', '"simulatability"]', "statement's likelihood"),
        ('"hierarchical_occlusion"', '"self_explanation"', "self_explanation does not work"),
        ('template = "plain"', 'template = "fancy"', "fancy"),
        ('"rows.jsonl"\ntemplate = "plain"', '"words.tsv"', "no questions with sources"),
    ],
)
def test_what_stands_in_the_way_is_said(old: str, new: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(STUDY.replace(old, new))
    with pytest.raises(StudyError, match=reason):
        examine(read(path))


def test_commands(tmp_path: Path) -> None:
    base = "--model llama --data rows.jsonl --methods occlusion --unit part --template plain".split()
    told = CliRunner().invoke(app, ["compare", *base, "--metrics", "precision_at_top", "--json"])
    assert told.exit_code == 0, told.output
    assert [row["method"] for row in json.loads(told.stdout)["rows"]] == ["occlusion", "random"]
    cost = CliRunner().invoke(app, ["estimate", *base, "--json"])
    assert cost.exit_code == 0, cost.output
    said = json.loads(cost.stdout)
    assert said["forwards"]["occlusion"] == len(ROWS) * (len(SOURCES) + 1)
    assert said["model_bytes"] > 0
    assert said["batch_bytes"] > 0
    refused = CliRunner().invoke(app, ["compare", *base, "--unit", "word"])
    assert isinstance(refused.exception, InputError)
