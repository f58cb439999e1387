"""What the server says of runs without labels of their own and of odd words, and the limit of rankings."""

import json
from pathlib import Path

import pytest

import raison
from raison.web.server.served import ServedModels
from raison.web.server.settings import Limits, VisibleFolders
from tests.functions import CLASSES, overlap
from tests.serving import served_words, serving, words
from tests.unit.explaining.test_cite import ANSWER, QUESTION, SOURCES, TEMPLATE, WRITER


@pytest.mark.parametrize("target", ["pairs", "each", None, "classes"])
def test_only_classes_of_the_texts_are_labels(tmp_path: Path, target: str | None) -> None:
    """A pair contrasts what the model predicts, which would always be right."""
    given = {"pairs": [(None, CLASSES[0])] * 4, "classes": [1, 0, 1, 1]}.get(str(target), target)
    model = words()
    if target == "each":
        model = raison.load(lambda texts: [[0.9, 0.6]] * len(texts), classes=["a", "b"], multi_label=True)
    texts = ["a good film", "quiet good film", "good", "a good thing"]
    raison.compare(model, texts, "occlusion", "sufficiency", target=given, out=tmp_path / "run", progress=False)
    with serving(served_words(shown=VisibleFolders(runs=tmp_path))) as client:
        [run] = client.get("/api/runs").json()["runs"]
        found = client.get("/api/runs/texts", params={"run": "run", "row": "occlusion"}).json()
    assert run["labelled"] == (target == "classes")
    if target == "classes":
        assert (found["accuracy"]["texts"], found["accuracy"]["right"]) == (4, 3)
    else:
        assert found["accuracy"] is None
        assert {line["label"] for line in found["rows"]} == {None}


def test_half_a_character_in_many_texts_is_a_word_like_others(tmp_path: Path) -> None:
    rows = [{"text": f"I like \ud83d it. The film number {number} is good."} for number in range(6)]
    (tmp_path / "odd.jsonl").write_text("\n".join(map(json.dumps, rows)))
    raison.explain_file(
        words(), tmp_path / "odd.jsonl", tmp_path / "runs" / "odd", "occlusion", unit="sentence", format="jsonl",
        progress=False,
    )  # fmt: skip
    with serving(served_words(shown=VisibleFolders(runs=tmp_path / "runs"))) as client:
        row = {"run": "odd", "row": client.get("/api/runs").json()["runs"][0]["rows"][0]["label"]}
        found = client.get("/api/runs/words", params=row)
        assert found.status_code == 200
        assert "\ud83d" in json.dumps(found.json(), ensure_ascii=False)


def test_units_of_citations_are_sources(tmp_path: Path) -> None:
    (tmp_path / "asked.jsonl").write_text(json.dumps({"question": QUESTION, "sources": SOURCES, "answer": ANSWER}))
    raison.cite_file(
        WRITER, tmp_path / "asked.jsonl", tmp_path / "runs" / "cited", template=TEMPLATE, draws=0, format="jsonl",
        progress=False,
    )  # fmt: skip
    with serving(served_words(shown=VisibleFolders(runs=tmp_path / "runs"))) as client:
        assert [run["unit"] for run in client.get("/api/runs").json()["runs"]] == ["source"]


def test_a_ranking_is_predicted_within_the_limit_of_passes() -> None:
    with serving(
        ServedModels({"pairs": raison.load(overlap, classes=["relevance"], pairs=True)}, limits=Limits(passes=20))
    ) as client:
        for count, status in ((10, 200), (40, 422)):
            asked = {"model": "pairs", "text": ["a good film", ["a film", "good"] * (count // 2)]}
            found = client.post("/api/predict", json=asked)
            assert found.status_code == status, found.text
        assert "a ranking of 40 documents" in found.json()["error"]
        assert "fewer documents" in found.json()["error"]
