"""Whole files by a server: what is wrong with one row's answers keeps no other row from its explanation."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import raison
from raison.core.errors import DataError, RaisonError, ServerError
from raison.core.model import LanguageModel
from raison.explaining.files import survey as surveys
from raison.explaining.generation import Writing
from raison.jobs.engine import Engine, Sharing
from raison.models.served.request_settings import SpentError
from raison.models.served.transport import IN_A_ROW
from raison.runs.files.flat_records import result_of
from raison.runs.files.folder import WrittenShards, read
from tests.fake_server import Fake, running
from tests.fake_server import apart as apart
from tests.forks import forked as forked

TEXTS = ["Review: a warm film", "Review: a dull film", "Review: not a great end"]
OUTPUT = Writing(output=" great")


def echoing() -> Fake:
    return Fake(features={"completions", "chat", "echo", "strict"}, shape="parallel", top=5)


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    return path


def outputs(fake: Fake, texts: Path, served: raison.Served | None = None) -> WrittenShards:
    model, out = raison.load(fake.base, served=served), texts.parent / "out"
    return raison.explain_file(model, texts, out, "occlusion", writing=OUTPUT, format="jsonl", progress=False)


def predictions(fake: Fake, texts: Path, served: raison.Served | None = None) -> WrittenShards:
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
    assert [(one.row, "merge with the end of the prompt" in one.reason) for one in written.rejected] == [(1, True)]


def test_a_question_whose_answer_melts_is_one_row(texts: Path) -> None:
    asked = [{"question": text, "sources": {"a": "it is warm.", "b": "it ends."}, "answer": " great"} for text in TEXTS]
    path = texts.with_suffix(".jsonl")
    path.write_text("".join(json.dumps(row) + "\n" for row in asked))
    with running(echoing()) as fake:
        fake.melting = "dull"
        options = {"template": "plain", "within": "source", "draws": 0, "format": "jsonl"}
        written = raison.cite_file(raison.load(fake.base), path, path.parent / "out", progress=False, **options)
    assert [row["row"] for row in written.rows()] == [0, 2]
    assert [(one.row, "merge with the end of the prompt" in one.reason) for one in written.rejected] == [(1, True)]


def test_a_row_at_which_the_server_crashes_is_one_row(texts: Path) -> None:
    with running(Fake(faults_at={"dull": "500"})) as fake:
        written = predictions(fake, texts, raison.Served(attempts=2))
    assert [row["row"] for row in written.rows()] == [0, 2]
    [rejected] = written.rejected
    assert rejected.row == 1
    assert "cannot answer one request, tried 2 times: status 500" in rejected.reason


def test_a_server_that_crashes_at_every_row_stops_the_file(texts: Path) -> None:
    texts.write_text("a quiet end\n" + "".join(f"a sonata {number}\n" for number in range(20)))
    with running(Fake()) as fake:
        model = raison.load(fake.base, prompt="sentiment", served=raison.Served(attempts=1), concurrency=1)
        fake.faults_at["sonata"] = "500"
        with pytest.raises(ServerError, match="did not answer, tried once: status 500"):
            raison.explain_file(model, texts, texts.parent / "out", "occlusion", format="jsonl", progress=False)
        assert sum("sonata" in str(request) for request in fake.requests) <= IN_A_ROW + 2


@pytest.mark.parametrize(
    ("fault", "reason"), [("400", "refuses the request (status 400"), ("nan", "as a log-probability")]
)
def test_what_is_wrong_with_one_text_is_one_row(texts: Path, fault: str, reason: str) -> None:
    with running(Fake(faults_at={"dull film": fault})) as fake:
        written = predictions(fake, texts)
    assert [row["row"] for row in written.rows()] == [0, 2]
    assert [(one.row, reason in one.reason) for one in written.rejected] == [(1, True)]


@pytest.mark.parametrize(
    ("fault", "limits", "error"),
    [
        ("401", {}, "rejects the key"),
        ("503", {"attempts": 1}, "did not answer, tried once: status 503"),
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
        with pytest.raises(ServerError, match="no longer does"):
            raison.explain_file(model, texts, texts.parent / "out", "occlusion", progress=False)


def loading(base: str, most: int | None) -> Callable[[], LanguageModel]:
    """Nothing of the tests, which would be imported in each of several processes."""
    return partial(raison.load, base, prompt="sentiment", served=raison.Served(max_requests=most))


@pytest.mark.parametrize("engine", ["local", "ray"])
@pytest.mark.usefixtures("forked")
@pytest.mark.filterwarnings("ignore")  # what Ray warns of is Ray's own
def test_a_limit_holds_for_all_workers_together(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "ray":
        pytest.importorskip("ray")
    path, out, most = tmp_path / "many.txt", tmp_path / "out", 60
    path.write_text("".join(f"Review: a {word} film number {n}\n" for n in range(12) for word in ("warm", "dull")))
    monkeypatch.setattr(surveys, "ROWS", 1)

    def explained(fake: Fake, most: int | None, workers: int) -> WrittenShards:
        load = loading(fake.base, most)
        sharing = Sharing(workers=workers, engine=engine) if workers > 1 else Sharing()
        options = {"format": "jsonl", "progress": False, "sharing": sharing, "load": load}
        return raison.explain_file(load(), path, out, "occlusion", **options)

    with running(Fake(pause=0.01)) as fake:
        with pytest.raises(DataError, match=f"max_requests is {most}"):
            explained(fake, most, 2)
        done = read(out).done
        # A row has at most eight masked texts, which are counted before any of them is sent.
        assert most - 2 * 16 <= len(fake.requests) <= most
        written = explained(fake, None, 1)
    assert 0 < done < len(list(written.rows())) == 24


def test_loads_with_equal_limits_count_together_and_others_apart() -> None:
    with running(Fake()) as fake:
        first = loading(fake.base, 60)().server.meter  # type: ignore[attr-defined]
        used = len(fake.requests)
        assert first.requests == used
        second = loading(fake.base, 60)().server.meter  # type: ignore[attr-defined]
        assert second.requests == 0
        with pytest.raises(SpentError, match=r"max_requests is 60, and 61 would be reached"):
            second.foresee([10] * (61 - used), 0)
        other = loading(fake.base, 61)().server.meter  # type: ignore[attr-defined]
        other.foresee([10] * 61, 0)
