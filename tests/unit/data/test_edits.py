"""Texts that differ in a few words and in label: the words that differ are the known ones."""

import json
from pathlib import Path

import pytest

from raison.core.errors import DataError
from raison.core.inputs.unit import segments
from raison.data import Dataset, Row
from raison.data.edits import edits_as_truth
from raison.studies.data_loading import load_rows
from raison.studies.entries import StudyData


def _marked(row: Row) -> list[str]:
    assert len(row.rationales) == 1
    return [segments(row.text)[span.segment][span.start : span.end] for span in row.rationales[0]]


def _set(*texts: tuple[object, int]) -> Dataset:
    return Dataset("films", tuple(Row(text, label, number) for number, (text, label) in enumerate(texts, 1)))  # type: ignore[arg-type]


def test_neighbours_that_differ_in_a_word_and_in_label() -> None:
    data = _set(("A dull film , truly .", 0), ("a BRIGHT film , truly .", 1), ("Something else .", 0))
    found = edits_as_truth(data, 1)
    assert [(row.number, _marked(row)) for row in found.rows] == [(1, ["dull"]), (2, ["BRIGHT"])]
    assert found.name == "films, edits of at most 1 words"
    assert [row.text for row in found.rows] == [row.text for row in data.rows[:2]]


@pytest.mark.parametrize(
    "texts",
    [
        [("a dull film", 0), ("a bright film", 0)],  # the same label
        [("a dull film", 0), ("a dull film", 1)],  # no edit
        [("a dull slow film", 0), ("a bright quick film", 1)],  # two words
        [("a dull film", 0), ("between them", 0), ("a bright film", 1)],  # no neighbours
    ],
)
def test_what_is_no_edit(texts: list[tuple[object, int]]) -> None:
    with pytest.raises(DataError, match="no two texts"):
        edits_as_truth(_set(*texts), 1)


def test_pairs_are_compared_where_their_first_text_is_the_same() -> None:
    premise = "A man plays a guitar ."
    data = _set(
        ((premise, "A man plays ."), 0),
        (("A dog .", "A man sleeps ."), 2),
        ((premise, "A man sleeps ."), 2),
        ((premise, "A tall man plays ."), 1),
    )
    found = {row.number: row for row in edits_as_truth(data, 1).rows}
    assert {number: _marked(row) for number, row in found.items()} == {1: ["plays"], 3: ["sleeps"], 4: ["tall"]}
    assert {span.segment for row in found.values() for span in row.rationales[0]} == {1}


def test_a_text_that_only_lost_words_has_none_to_find() -> None:
    found = edits_as_truth(_set(("a good film", 1), ("not a good film", 0)), 2)
    assert [(row.number, _marked(row)) for row in found.rows] == [(2, ["not"])]


def test_the_smallest_edit_counts() -> None:
    data = _set(("a dull slow film", 0), ("a bright slow film", 1), ("a bright quick new film", 0))
    found = {row.number: _marked(row) for row in edits_as_truth(data, 3).rows}
    assert found[2] == ["bright"]
    assert found[3] == ["quick", "new"]


def test_no_words_are_no_edit() -> None:
    with pytest.raises(DataError, match="whole number, 1 or more"):
        edits_as_truth(_set(("a", 0), ("b", 1)), 0)


def test_studies_keep_edits_before_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "films.jsonl"
    texts = [("something else", "bad"), ("a dull film", "bad"), ("a bright film", "good")]
    path.write_text("\n".join(json.dumps({"text": text, "label": label}) for text, label in texts), encoding="utf-8")
    found = load_rows(StudyData(str(path), edited_words=1, limit=1), None)
    assert [(row.text, _marked(row)) for row in found.rows] == [("a dull film", ["dull"])]
