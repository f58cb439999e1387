"""What each row of a file is explained against: another class, a word that was not written, another document."""

import json
from functools import cache
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

import raison
from raison.cli import app
from raison.core.errors import InputError
from raison.core.model import LanguageModel
from raison.core.results.generation import GenerationExplanation
from raison.core.targets.target import resolve_target
from raison.data.streams import Reading
from raison.explaining.files.entry_points import explain_file
from raison.explaining.generation import Writing
from raison.explaining.settings import Settings
from raison.runs.files.flat_records import explanation_of, result_of
from tests.contracts.test_numbers import TRIED
from tests.tiny import build, build_language_model

CLASSES = ("joy", "anger", "fear")
TEXTS = ("a dull plot", "the film is not good", "a quiet pleasure and a loud end")
LOGITS = torch.tensor([[1.0, 0.0, 2.0], [3.0, 0.0, 1.0]])
AGAINST = Reading(contrast_column="instead")


@cache
def model() -> LanguageModel:
    return raison.load(*build("bert", CLASSES))


@cache
def predicted() -> tuple[str, ...]:
    return tuple(e.prediction for e in raison.explain(model(), TEXTS, "random", progress=False))


def other(name: str) -> str:
    """The next class."""
    return CLASSES[(CLASSES.index(name) + 1) % len(CLASSES)]


def written(place: Path, contrasts: list[object]) -> Path:
    rows = [{"text": text, "instead": one} for text, one in zip(TEXTS, contrasts, strict=True)]
    place.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return place


def saved(place: Path) -> str:
    loaded = model()
    loaded.model.save_pretrained(place)
    loaded.tokenizer.save_pretrained(place)
    return str(place)


def test_none_in_a_pair_is_the_class_that_each_text_is_predicted() -> None:
    found = resolve_target((None, "anger"), None, LOGITS, CLASSES, False)
    assert found.against is not None
    assert (found.index.tolist(), found.against.tolist()) == ([2, 0], [1, 1])
    each = resolve_target([(None, "joy"), ("fear", 1)], "logit", LOGITS, CLASSES, False)
    assert each.against is not None
    assert (each.index.tolist(), each.against.tolist()) == ([2, 2], [0, 1])
    assert each.scalar(LOGITS).tolist() == [2.0 - 1.0, 1.0 - 0.0]
    with pytest.raises(InputError, match="the model predicts it"):
        resolve_target((None, "fear"), None, LOGITS, CLASSES, False)
    with pytest.raises(InputError, match="other entries are pairs"):
        resolve_target([(None, "joy"), "joy"], None, LOGITS, CLASSES, False)


def test_every_row_is_explained_against_its_own_class(tmp_path: Path) -> None:
    others: list[object] = [other(name) for name in predicted()]
    file = written(tmp_path / "rows.jsonl", others)
    found = explain_file(
        model(), file, tmp_path / "out", "occlusion", reading=AGAINST, of="logit", format="jsonl", progress=False
    )
    explanations = list(map(explanation_of, found.rows()))
    assert [(e.target, e.against) for e in explanations] == list(zip(predicted(), others, strict=True))
    alone = raison.explain(model(), TEXTS[0], "occlusion", target=(predicted()[0], other(predicted()[0])), of="logit")
    assert explanations[0].scores == pytest.approx(alone.scores, abs=1e-5)


def test_a_row_that_cannot_be_is_told(tmp_path: Path) -> None:
    file = written(tmp_path / "rows.jsonl", [other(predicted()[0]), predicted()[1], " "])
    found = explain_file(model(), file, tmp_path / "out", "occlusion", reading=AGAINST, format="jsonl", progress=False)
    assert len(list(map(explanation_of, found.rows()))) == 1
    reasons = [one.reason for one in found.rejected]
    assert "the model predicts it" in reasons[0]
    assert "no contrast class in column 'instead'" in reasons[1]


def test_other_words_of_a_model_that_writes(tmp_path: Path) -> None:
    writer = raison.load(*build_language_model("gpt2"))
    words: list[object] = [" good", " dull", [" film", " sea"]]
    file = written(tmp_path / "rows.jsonl", words)
    asked = Writing(max_new_tokens=2)
    found = explain_file(
        writer, file, tmp_path / "out", "occlusion", reading=AGAINST, writing=asked, format="jsonl", progress=False
    )
    outputs = [result_of(row) for row in found.rows()]
    for text, word, e in zip(TEXTS, words, outputs, strict=True):
        assert isinstance(e, GenerationExplanation)
        alone = raison.explain(writer, text, "occlusion", max_new_tokens=2, contrast=word)
        assert [token.against for token in e.tokens] == [token.against for token in alone.tokens]


def test_rankings_of_a_file_are_explained(tmp_path: Path) -> None:
    scorer = raison.load(*build("bert", ("relevance",)))
    row = {"query": "who ?", "document": "a dull plot", "other_document": "the old sailor told a story"}
    (tmp_path / "rows.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    found = explain_file(scorer, tmp_path / "rows.jsonl", tmp_path / "out", "occlusion", format="jsonl", progress=False)
    [e] = map(explanation_of, found.rows())
    assert e.text == tuple(row.values())
    assert e.target == "document 1 before document 2"


def test_comparisons_and_audits_take_the_column(tmp_path: Path) -> None:
    others: list[object] = [other(name) for name in predicted()]
    file, name = written(tmp_path / "rows.jsonl", others), saved(tmp_path / "model")
    asked = ["--model", name, "--data", str(file), "--contrast-column", "instead", "--methods", "occlusion", "--json"]
    done = CliRunner().invoke(app, ["compare", *asked, "--metrics", "infidelity"])
    assert done.exit_code == 0, done.output
    pairs = [(None, one) for one in others]
    expected = raison.compare(raison.load(name), TEXTS, "occlusion", "infidelity", target=pairs, progress=False)
    told = {row["method"]: row for row in json.loads(done.stdout)["rows"]}
    assert told["occlusion"]["metrics"][0]["values"] == pytest.approx(
        list(expected["occlusion"]["infidelity"].values), abs=1e-5
    )
    plain = raison.compare(raison.load(name), TEXTS, "occlusion", "infidelity", progress=False)
    assert plain["occlusion"]["infidelity"].values != expected["occlusion"]["infidelity"].values
    settings = Settings(target=pairs)
    audited = raison.audit(
        raison.load(name), TEXTS, "saliency", out=tmp_path / "audit", plan=TRIED, settings=settings, progress=False
    )
    assert audited.progress[0] == audited.progress[1]
    assert audited.header.contrasts
    with pytest.raises(InputError, match="leave target out, or give a pair"):
        raison.audit(model(), TEXTS, "saliency", out=tmp_path / "no", settings=Settings(target="joy"))
