"""Several results in one file."""

from pathlib import Path

import pytest

import raison
from raison.core.errors import InputError
from raison.core.results.citations import Citations
from raison.core.results.generation import GenerationExplanation
from tests.tiny import build_language_model

SOURCES = ["a quiet film", "more of it"]


@pytest.fixture(scope="module", name="outputs")
def _outputs() -> list[GenerationExplanation]:
    model = raison.load(*build_language_model("llama"))
    return raison.explain(model, ["a quiet film", "a film with"], "occlusion", output=[" and more", " of it"])


@pytest.fixture(scope="module", name="answers")
def _answers() -> list[Citations]:
    model = raison.load(*build_language_model("llama"))
    return [raison.cite(model, question, SOURCES, answer=" a film") for question in ("what is it?", "a film?")]


def test_outputs_are_one_file(outputs: list[GenerationExplanation], tmp_path: Path) -> None:
    page = raison.save(outputs, tmp_path / "outputs.html").read_text(encoding="utf-8")
    assert page.count("<article") == 2
    assert "2 explained outputs" in page
    written = raison.save(outputs, tmp_path / "outputs.json").read_text(encoding="utf-8")
    assert GenerationExplanation.list_from_json(written) == outputs


def test_citations_are_one_file(answers: list[Citations], tmp_path: Path) -> None:
    page = raison.save(answers, tmp_path / "answers.html").read_text(encoding="utf-8")
    assert page.count("<article") == 2
    written = raison.save(answers, tmp_path / "answers.json").read_text(encoding="utf-8")
    assert Citations.list_from_json(written) == answers


def test_a_file_has_one_kind(outputs: list[GenerationExplanation], answers: list[Citations], tmp_path: Path) -> None:
    for mixed in ([*outputs, *answers], [], [outputs]):
        with pytest.raises(InputError, match="only one kind of these"):
            raison.save(mixed, tmp_path / "mixed.html")
    with pytest.raises(InputError, match="cannot save 2 results as '.svg'"):
        raison.save(outputs, tmp_path / "outputs.svg")
    assert not list(tmp_path.iterdir())
