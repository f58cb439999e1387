"""Decoders as classifiers, from files and from the command line: prompts, studies, commands, bad input."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import raison
from raison.cli import app
from raison.core.capabilities.step_logits import StepLogits
from raison.core.errors import InputError, LoadError, TextTooLongError, UnsupportedError
from raison.models.loading.load import as_classifier
from raison.runs.table import comparison
from raison.studies.data_loading import load_rows
from raison.studies.file import read
from raison.studies.kinds.comparison.results import read as read_study
from raison.studies.runner import examine, run
from tests.tiny import TEXTS, build, build_language_model

PROMPT = """
task = "What is it?"
shot = "{text} :{label}"
[labels]
bad = " dull"
good = " loved"
"""
STUDY = """
schema = 1
title = "Decoders"
methods = ["sp_pi", "mp_pi", "attention_last", "random"]
metrics = ["activation_auc"]
[settings]
target = "label"
of = "logit"
[models.writer]
name = "llama"
prompt = "film.toml"
[data.words]
source = "films.jsonl"
limit = 3
[data.sentences]
source = "films.jsonl"
longest = 5
unit = "sentence"
"""
FILMS = (
    ("the film is a quiet pleasure", "good"),
    ("a dull plot. it is bad", "bad"),
    ("I love it. So good", "good"),
    ("a boring film about the old sea and a modest story", "bad"),
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a language model, a prompt, labelled texts and a study, and the current one."""
    model, tokenizer = build_language_model("llama")
    model.save_pretrained(tmp_path / "llama")
    tokenizer.save_pretrained(tmp_path / "llama")
    (tmp_path / "film.toml").write_text(PROMPT, encoding="utf-8")
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    rows = [json.dumps({"text": text, "label": label}) for text, label in FILMS]
    (tmp_path / "films.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_study_of_a_language_model_with_a_prompt(place: Path) -> None:
    folder = run("study.toml", place / "out", progress=False)
    runs = read_study(folder).runs
    assert set(runs) == {"writer--words", "writer--sentences"}
    assert [runs[name].header.settings.unit for name in ("writer--words", "writer--sentences")] == [
        "word",
        "sentence",
    ]
    for found in runs.values():
        rows = comparison(found).rows
        assert {row.method for row in rows} == {"sp_pi", "mp_pi", "attention_last", "random"}
        assert all(0 <= row["activation_auc"].summary.mean <= 1 for row in rows)


def test_longest_counts_words_before_the_limit(place: Path) -> None:
    study = read("study.toml")
    short = load_rows(study.spec.grid.data["sentences"], None)
    assert [row.text for row in short.rows] == ["I love it. So good"]
    assert "at most 5 words" in short.name
    assert len(load_rows(study.spec.grid.data["words"], None)) == 3


def test_first_words_cut_texts(place: Path) -> None:
    path = place / "study.toml"
    path.write_text(STUDY.replace("limit = 3", "first_words = 3"), encoding="utf-8")
    cut = load_rows(read("study.toml").spec.grid.data["words"], None)
    assert [row.text for row in cut.rows] == ["the film is", "a dull plot.", "I love it.", "a boring film"]
    assert "the first 3 words" in cut.name


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('prompt = "film.toml"', "", "no questions with sources, .* a prompt with label words"),
        ('prompt = "film.toml"', 'prompt = "sentimant"', "Did you mean 'sentiment'?"),
        ('prompt = "film.toml"', 'prompt = "film.toml"\nexplained = "shots"', "unknown explained 'shots'"),
        ('prompt = "film.toml"', "calibrate = true", "belong to a prompt"),
        ('unit = "sentence"', 'unit = "sentences"', "Did you mean 'sentence'?"),
        ('" loved"', '" dull"', "label"),
    ],
)
def test_bad_studies_say_why(place: Path, old: str, new: str, said: str) -> None:
    for name in ("study.toml", "film.toml"):
        path = place / name
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(raison.RaisonError, match=said.replace("?", r"\?")):
        examine(read("study.toml"))


def invoke(*words: str) -> tuple[int, str]:
    found = CliRunner().invoke(app, list(words))
    return found.exit_code, found.output


def test_commands_take_a_prompt(place: Path) -> None:
    text = "a quiet film , but good"
    code, printed = invoke("explain", text, "--model", "llama", "--prompt", "film.toml", "-M", "sp_pi", "--json")
    assert code == 0
    explanation = raison.Explanation.from_json(printed)
    model = raison.load("llama", prompt="film.toml")
    assert explanation.scores == pytest.approx(raison.explain(model, text, "sp_pi").scores, abs=1e-6)
    assert explanation.classes == ("bad", "good")
    whole = invoke("explain", text, "-m", "llama", "--prompt", "film.toml", "--explain-prompt", "-M", "sp_pi", "--json")
    assert json.loads(whole[1])["units"][0]["text"] == "What is it?"
    code, printed = invoke("doctor", "llama", "--prompt", "film.toml")
    assert code == 0, printed
    assert "sp_pi" in printed
    code, printed = invoke(
        "compare",
        "-d",
        "films.jsonl",
        "-m",
        "llama",
        "--prompt",
        "film.toml",
        "--methods",
        "sp_pi",
        "--metrics",
        "comprehensiveness",
        "--calibrate",
        "--json",
    )
    assert code == 0, printed


def test_methods_of_progressive_inference_refuse_encoders() -> None:
    model = raison.load(*build("bert"))
    for method in ("sp_pi", "mp_pi"):
        with pytest.raises(UnsupportedError, match="lacks the capability 'step_logits'"):
            raison.explain(model, TEXTS[0], method)
    encoding = model.encode(TEXTS[:1])
    keeps = [torch.ones(1, encoding.unit_counts[0], dtype=torch.bool)]
    with pytest.raises(UnsupportedError, match="Only causal models"):
        model.ask(StepLogits).step_logits(encoding, keeps, "mask")


def test_a_classifier_without_begin_of_text_has_no_prior() -> None:
    model, tokenizer = build("gpt2")
    loaded = raison.load(model, tokenizer)
    assert int(loaded.encode(TEXTS[:1]).unit_ids[0, 0]) == 0, "a tokenizer that adds a token would pass"
    with pytest.raises(UnsupportedError, match="nothing precedes the text"):
        raison.explain(loaded, TEXTS[0], "sp_pi(start='prior')")


def test_a_prompt_that_leaves_no_room_and_a_text_that_is_too_long(place: Path) -> None:
    (place / "film.toml").write_text(PROMPT.replace("What is it?", "What is it? " * 60), encoding="utf-8")
    with pytest.raises(InputError, match="context|room|reads at most"):
        raison.load("llama", prompt="film.toml")
    (place / "film.toml").write_text(PROMPT, encoding="utf-8")
    model = raison.load("llama", prompt="film.toml")
    long = "the old sailor told a story . " * 30
    with pytest.raises(TextTooLongError, match="truncate=True") as refused:
        raison.explain(model, long, "sp_pi")
    assert refused.value.truncatable
    assert raison.explain(model, long, "sp_pi", truncate=True).truncated > 0


def test_a_tokenizer_without_padding_token_is_fine() -> None:
    model, tokenizer = build_language_model("llama")
    tokenizer.pad_token = None
    loaded = raison.load(
        model,
        tokenizer,
        prompt=raison.Prompt(name="film", shot="{text} :{label}", labels={"a": " dull", "b": " loved"}),
    )
    explanations = raison.explain(loaded, list(TEXTS), "occlusion", removal="delete")
    assert all(np.isfinite(explanation.scores).all() for explanation in explanations)
    assert tokenizer.pad_token is None


def test_a_language_model_alone_is_no_classifier() -> None:
    loaded = raison.load(*build_language_model("gpt2"))
    with pytest.raises(LoadError, match="give it a prompt with label words"):
        as_classifier(loaded)


@pytest.mark.thorough
@pytest.mark.demo
def test_the_demo_language_model_classifies() -> None:
    model = raison.load("demo/smollm2")
    good = raison.explain(model, "a moving and wonderfully acted film", "sp_pi")
    bad = raison.explain(model, "a clumsy , boring mess", "sp_pi")
    assert (good.prediction, bad.prediction) == ("positive", "negative")
    assert model.removals[0] == "ellipsis"
    assert model.tokenizer.decode([model.removing.replacements["ellipsis"]]) == " ..."
