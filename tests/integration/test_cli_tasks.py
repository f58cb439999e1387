"""Models of vectors and of tags on the command line."""

import json
from pathlib import Path

import pytest
from transformers import AutoModelForTokenClassification
from typer.testing import CliRunner

import raison
from raison.cli import app
from raison.core.errors import InputError
from tests.tiny import build_at_places, build_embedder


@pytest.fixture(scope="module", name="folders")
def _folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("models")
    tagger = build_at_places("bert", AutoModelForTokenClassification, ("O", "B-PER", "I-PER"))
    for name, parts in (("vectors", build_embedder("bert")), ("tags", tagger)):
        for part in parts:
            part.save_pretrained(root / name)
    return root


def _run(*words: str) -> str:
    result = CliRunner().invoke(app, ["explain", *words, "--method", "occlusion", "--json"])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(("measure", "pooling"), [("cosine", None), ("dot", "max")])
def test_an_embedding_model_compares_a_pair(folders: Path, measure: str, pooling: str | None) -> None:
    model = str(folders / "vectors")
    pooled = () if pooling is None else ("--pooling", pooling)
    shown = json.loads(_run("a quiet film", "--pair", "a film", "-m", model, "--similarity", measure, *pooled))
    loaded = raison.load(model, similarity=measure, pooling=pooling)
    expected = raison.explain(loaded, ("a quiet film", "a film"), "occlusion")
    assert shown["scores"] == pytest.approx(list(expected.scores))
    assert shown["value_full"] == pytest.approx(expected.value_full)


def test_a_tagger_joins_tokens_as_asked(folders: Path) -> None:
    model = str(folders / "tags")
    shown = json.loads(_run("a quiet film", "-m", model, "--aggregation", "first"))
    expected = raison.explain(raison.load(model, aggregation="first"), "a quiet film", "occlusion")
    assert shown == json.loads(expected.to_json()) | {name: shown[name] for name in ("model", "seconds")}


def test_an_unknown_name_is_one_line(folders: Path) -> None:
    for option, value in (("--similarity", "near"), ("--pooling", "middle"), ("--aggregation", "most")):
        words = ["explain", "a", "--pair", "b", "-m", str(folders / "vectors"), option, value]
        result = CliRunner().invoke(app, words)
        assert result.exit_code != 0
        assert value in str(result.exception)
        assert isinstance(result.exception, InputError)
