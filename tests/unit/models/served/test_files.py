"""Whole files by a server: what is wrong with one row's answers keeps no other row from its explanation."""

import json
from pathlib import Path

import pytest

import raison
from raison.core.errors import RaisonError, ServerError
from raison.explaining.generation import Writing
from raison.runs.files.folder import Written, read
from raison.runs.files.rows import result_of
from tests.fake_server import Fake, running

TEXTS = ["Review: a warm film", "Review: a dull film", "Review: not a great end"]
OUTPUT = Writing(output=" great")


def echoing() -> Fake:
    return Fake(features={"completions", "chat", "echo", "strict"}, shape="parallel", top=5)


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    return path


def outputs(fake: Fake, texts: Path, served: raison.Served | None = None) -> Written:
    model, out = raison.load(fake.base, served=served), texts.parent / "out"
    return raison.explain_file(model, texts, out, "occlusion", writing=OUTPUT, format="jsonl", progress=False)


def predictions(fake: Fake, texts: Path, served: raison.Served | None = None) -> Written:
    model, out = raison.load(fake.base, prompt="sentiment", served=served), texts.parent / "out"
    return raison.explain_file(model, texts, out, "occlusion", format="jsonl", progress=False)


def test_an_output_that_melts_into_its_prompt_is_one_row(texts: Path) -> None:
    with running(echoing()) as fake:
        fake.melting = "dull"
        written = outputs(fake, texts)
        alone = raison.explain(raison.load(fake.base), TEXTS[2], "occlusion", output=" great", progress=False)
    assert [row["row"] for row in written.rows()] == [0, 2]
    *_, last = map(result_of, written.rows())
    assert last.scores == alone.scores
    assert [(one.row, "melt into the end of the prompt" in one.reason) for one in written.rejected] == [(1, True)]


def test_a_question_whose_answer_melts_is_one_row(texts: Path) -> None:
    asked = [{"question": text, "sources": {"a": "it is warm.", "b": "it ends."}, "answer": " great"} for text in TEXTS]
    path = texts.with_suffix(".jsonl")
    path.write_text("".join(json.dumps(row) + "\n" for row in asked))
    with running(echoing()) as fake:
        fake.melting = "dull"
        options = {"template": "plain", "within": "source", "draws": 0, "format": "jsonl"}
        written = raison.cite_file(raison.load(fake.base), path, path.parent / "out", progress=False, **options)
    assert [row["row"] for row in written.rows()] == [0, 2]
    assert [(one.row, "melt into the end of the prompt" in one.reason) for one in written.rejected] == [(1, True)]


@pytest.mark.parametrize(
    ("fault", "reason"), [("400", "refuses the request (status 400"), ("nan", "for a log-probability")]
)
def test_what_is_wrong_with_one_text_is_one_row(texts: Path, fault: str, reason: str) -> None:
    with running(Fake(faults_at={"dull film": fault})) as fake:
        written = predictions(fake, texts)
    assert [row["row"] for row in written.rows()] == [0, 2]
    assert [(one.row, reason in one.reason) for one in written.rejected] == [(1, True)]


@pytest.mark.parametrize(
    ("fault", "limits", "error"),
    [
        ("401", {}, "wants another key"),
        ("500", {"attempts": 1}, "did not answer, asked once: status 500"),
        ("", {"max_requests": 30}, "max_requests is 30"),
    ],
)
def test_what_concerns_the_server_stops_the_file_which_goes_on_later(
    texts: Path, fault: str, limits: dict[str, int], error: str
) -> None:
    with running(Fake()) as fake:
        fake.faults_at = {"dull film": fault} if fault else {}
        with pytest.raises(RaisonError, match=error):
            predictions(fake, texts, raison.Served(**limits))
        assert not list(read(texts.parent / "out").rejected)
        fake.faults_at = {}
        written = predictions(fake, texts)
    assert [row["row"] for row in written.rows()] == [0, 1, 2]


def test_a_server_that_gives_no_more_log_probabilities_stops_the_file(texts: Path) -> None:
    with running(Fake()) as fake:
        model = raison.load(fake.base, prompt="sentiment")
        fake.top = 0
        with pytest.raises(ServerError, match="gives none now"):
            raison.explain_file(model, texts, texts.parent / "out", "occlusion", progress=False)
