"""Runs and explained files as the server shows them: slices, words, and nothing outside the folder."""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from shutil import copytree

import pytest
from scipy.stats import binomtest
from starlette.testclient import TestClient

import raison
from raison.core.errors import DataError
from raison.core.results.citations import Citations
from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation
from raison.core.settings.reading import dump
from raison.explaining.generation import Writing
from raison.models.adapters.writing.generator import Generator
from raison.runs.overview import overview
from raison.runs.run import read_run
from raison.web.server.settings import VisibleFolders
from tests.functions import CLASSES, TEXTS, rating
from tests.serving import served_words, serving, words
from tests.tiny import build_language_model
from tests.unit.explaining.test_cite import ANSWER, QUESTION, SOURCES, TEMPLATE, WRITER

MODEL = words()
FILED = ["a good film", "a bad film", "not a film", "quiet film of it", "good or bad"] * 6
NUMBERED = ["1", "0", "1", "1", "0"] * 6


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with serving(served_words()) as client:
        yield client


def test_runs_need_a_folder(client: TestClient) -> None:
    assert client.get("/api/runs").json() == {"runs": []}
    missing = client.get("/api/runs/texts", params={"run": "../..", "row": "random"})
    assert missing.status_code == 404
    assert missing.json()["error"].startswith("unknown run '../..'")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A comparison, and the explanations of a file."""
    place = tmp_path_factory.mktemp("runs")
    lines = [f"{text},{label}" for text, label in zip(FILED, NUMBERED, strict=True)]
    data = tmp_path_factory.mktemp("data") / "texts.csv"
    data.write_text("\n".join(["text,label", *lines]))
    raison.explain_file(MODEL, data, place / "files", "occlusion", format="jsonl", progress=False)
    texts = [*TEXTS, "not a good film", "quiet"]
    raison.compare(
        MODEL, texts, methods=["occlusion"], metrics=["comprehensiveness"], target=[1, 1, 1, 1, 0],
        out=place / "deep" / "words", progress=False,
    )  # fmt: skip
    return place


def test_runs_are_shown_in_slices(folder: Path) -> None:
    with serving(served_words(shown=VisibleFolders(runs=folder))) as client:
        run = client.get("/api/runs").json()["runs"][0]
        assert (run["run"], run["texts"], run["explained"], run["labelled"]) == ("deep/words", 5, True, True)
        assert [row["label"] for row in run["rows"]] == ["occlusion", "random"]
        row = {"run": "deep/words", "row": "occlusion"}
        found = client.get("/api/runs/texts", params={**row, "count": 2, "sort": "units", "descending": True}).json()
        assert (found["texts"], found["matching"], found["start"]) == (5, 5, 0)
        assert [line["number"] for line in found["rows"]] == [2, 0]
        wrong = client.get("/api/runs/texts", params={**row, "wrong": True}).json()
        assert all(line["prediction"] != line["target"] for line in wrong["rows"])
        assert 0 < wrong["matching"] < 5
        worded = client.get("/api/runs/texts", params={**row, "word": "BAD", "sort": "comprehensiveness"}).json()
        assert sorted(line["number"] for line in worded["rows"]) == [0, 1]
        top = client.get("/api/runs/texts", params={**row, "top": "good", "least": 2}).json()
        assert all("good" in line["text"] for line in top["rows"])
        e = client.get("/api/runs/explanation", params={**row, "number": 1})
        assert Explanation.from_json(e.text).text == "bad"
        for params, status in (
            ({**row, "number": 5}, 404),
            ({**row, "row": "lime", "number": 0}, 404),
            ({**row, "seed": 9, "number": 0}, 404),
        ):
            assert client.get("/api/runs/explanation", params=params).status_code == status
        assert client.get("/api/runs/texts", params={**row, "sort": "beauty"}).status_code == 422
        assert client.get("/api/runs/texts", params={**row, "count": 201}).status_code == 422


def test_what_a_run_that_goes_on_has_explained_is_shown(folder: Path, tmp_path: Path) -> None:
    run = tmp_path / "half"
    copytree(folder / "deep" / "words", run)
    for name in ("records.jsonl", "explanations.jsonl"):
        lines = (run / name).read_bytes().splitlines(keepends=True)
        left = [line for line in lines if b'"text": 0,' not in line and b'"text": 3,' not in line]
        assert len(left) == len(lines) - 4
        (run / name).write_bytes(b"".join(left))
    with serving(served_words(shown=VisibleFolders(runs=tmp_path))) as client:
        row = {"run": "half", "row": "occlusion"}
        found = client.get("/api/runs/texts", params=row).json()["rows"]
        texts = [*TEXTS, "not a good film", "quiet"]
        assert [(line["number"], line["text"]) for line in found] == [(n, texts[n]) for n in (1, 2, 4)]
        for number in (1, 2, 4):
            e = client.get("/api/runs/explanation", params={**row, "number": number})
            assert Explanation.from_json(e.text).text == texts[number]
        assert client.get("/api/runs/explanation", params={**row, "number": 3}).status_code == 404
        assert client.get("/api/runs/words", params=row).status_code == 200
    with pytest.raises(DataError, match="has the explanations by occlusion of 3 of 5 texts: resume the run"):
        read_run(run).explanations("occlusion", 0)


def test_a_comparison_of_numbers_is_cut_by_them(tmp_path: Path) -> None:
    texts = ["a good film", "good", "bad", "a bad film", "film"]
    model = raison.load(rating, classes=["rating"])
    raison.compare(model, texts, methods=["occlusion"], metrics=["gini"], out=tmp_path / "rated", progress=False)
    with serving(served_words(shown=VisibleFolders(runs=tmp_path))) as client:
        [run] = client.get("/api/runs").json()["runs"]
        assert run["gives"] == "number"
        row = {"run": "rated", "row": "occlusion", "sort": "value"}
        whole = [line["value"] for line in client.get("/api/runs/texts", params=row).json()["rows"]]
        assert whole == sorted(rating(texts).tolist())
        some = client.get("/api/runs/texts", params={**row, "above": whole[1], "below": whole[3]}).json()
        assert [line["value"] for line in some["rows"]] == [value for value in whole if whole[1] <= value <= whole[3]]


def test_explained_files_are_a_run_of_one_row(folder: Path) -> None:
    with serving(served_words(shown=VisibleFolders(runs=folder))) as client:
        run = client.get("/api/runs").json()["runs"][1]
        assert (run["run"], run["texts"], run["data"], run["labelled"]) == ("files", len(FILED), "texts.csv", True)
        row = {"run": "files", "row": run["rows"][0]["label"]}
        whole = client.get("/api/runs/texts", params=row).json()
        predicted = [raison.explain(MODEL, text, "occlusion", progress=False) for text in FILED]
        assert [line["text"] for line in whole["rows"]] == FILED
        assert [line["label"] for line in whole["rows"]] == [CLASSES[int(number)] for number in NUMBERED]
        assert [line["prediction"] for line in whole["rows"]] == [e.prediction for e in predicted]
        right = sum(e.prediction == CLASSES[int(n)] for e, n in zip(predicted, NUMBERED, strict=True))
        assert (whole["accuracy"]["texts"], whole["accuracy"]["right"]) == (len(FILED), right)
        low, high = binomtest(right, len(FILED)).proportion_ci(method="wilson")
        assert (whole["accuracy"]["low"], whole["accuracy"]["high"]) == pytest.approx((low, high))
        found = client.get("/api/runs/explanation", params={**row, "number": 3})
        assert Explanation.from_json(found.text).scores == pytest.approx(predicted[3].scores)
        assert client.get("/api/runs/explanation", params={**row, "number": len(FILED)}).status_code == 404
        assert client.get("/api/runs/texts", params={**row, "row": "lime"}).status_code == 404
        words = client.get("/api/runs/words", params=row).json()
        assert words == json.loads(dump(asdict(overview(predicted))))
        assert {one["word"] for one in words["shortcuts"]} == {"bad", "not"}


def test_what_was_written_is_a_line_with_all_that_was_said_of_it(tmp_path: Path) -> None:
    asked = {"question": QUESTION, "sources": SOURCES, "answer": ANSWER}
    (tmp_path / "asked.jsonl").write_text("\n".join([json.dumps(asked)] * 3))
    (tmp_path / "prompts.txt").write_text("the film is\nnot good for\n")
    runs = tmp_path / "runs"
    of_files = {"format": "jsonl", "progress": False}
    two = Writing(max_new_tokens=2)
    raison.cite_file(WRITER, tmp_path / "asked.jsonl", runs / "cited", template=TEMPLATE, draws=0, **of_files)
    generator = Generator(*build_language_model("llama"), "tiny")
    raison.explain_file(generator, tmp_path / "prompts.txt", runs / "out", "saliency", writing=two, **of_files)
    with serving(served_words(shown=VisibleFolders(runs=runs))) as client:
        told = client.get("/api/runs").json()["runs"]
        assert [(run["gives"], run["texts"], run["labelled"]) for run in told] == [
            ("answer", 3, False),
            ("output", 2, False),
        ]
        for run, kind in zip(told, (Citations, GenerationExplanation), strict=True):
            row = {"run": run["run"], "row": run["rows"][0]["label"]}
            lines = client.get("/api/runs/texts", params=row).json()["rows"]
            assert [line["size"] for line in lines] == [2] * run["texts"]
            last = {**row, "number": run["texts"] - 1}
            found = kind.from_json(client.get("/api/runs/explanation", params=last).text)
            assert (found.question if isinstance(found, Citations) else found.prompt) == lines[-1]["text"]
            assert client.get("/api/runs/explanation", params={**row, "number": run["texts"]}).status_code == 404
            refused = client.get("/api/runs/trust", params=last)
            assert (refused.status_code, "generated text" in refused.json()["error"]) == (422, True)


@pytest.mark.parametrize("run", ["files", "deep/words"])
def test_slices_are_what_their_filters_give(folder: Path, run: str) -> None:
    with serving(served_words(shown=VisibleFolders(runs=folder))) as client:
        row = {"run": run, "row": "occlusion"}
        slices = client.get("/api/runs/slices", params=row).json()["slices"]
        whole = client.get("/api/runs/texts", params=row).json()
        for by in {one["by"] for one in slices}:
            assert sum(one["texts"] for one in slices if one["by"] == by) == whole["texts"]
        for one in slices:
            found = client.get("/api/runs/texts", params={**row, **one["query"]}).json()
            assert (found["matching"], found["accuracy"]) == (one["texts"], one["accuracy"])


@pytest.mark.parametrize("run", ["deep/words", "files"])
def test_no_link_leads_out_of_the_folder_of_runs(folder: Path, tmp_path: Path, run: str) -> None:
    shown = tmp_path / "shown"
    shown.mkdir()
    (shown / "linked").symlink_to(folder / run, target_is_directory=True)
    for name in ("part", "deeper"):
        (shown / name).mkdir()
    for file in (folder / run).iterdir():
        (shown / "part" / file.name).symlink_to(file)
    if run == "files":
        copytree(folder / run, shown / "deeper", dirs_exist_ok=True)
        [shard] = (shown / "deeper" / "explanations").iterdir()
        shard.unlink()
        shard.symlink_to(folder / run / "explanations" / shard.name)
    with serving(served_words(shown=VisibleFolders(runs=shown))) as client:
        assert client.get("/api/runs").json() == {"runs": []}
        for named in ("linked", "part", "deeper", f"../runs0/{run}", str(folder / run), "", ".", "\x00"):
            for path in ("texts", "slices", "words"):
                found = client.get(f"/api/runs/{path}", params={"run": named, "row": "occlusion"})
                assert found.status_code == 404
