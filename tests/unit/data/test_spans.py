"""Parts of texts in data files: both forms, pairs, and what is refused."""

import json
from pathlib import Path

import pytest

import raison
from raison.core.errors import DataError
from raison.core.inputs.parts import PartedText
from raison.data.lengths import first_words

ROOT = Path(__file__).parents[3]


def lines(folder: Path, *rows: dict[str, object]) -> Path:
    path = folder / "parts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_the_example_names_titles_and_bodies() -> None:
    data = raison.data.load(ROOT / "examples/parts.jsonl")
    assert data.has_units
    first = data.parted[0]
    assert isinstance(first, PartedText)
    assert {part.name: part.text for part in first.parts} == {
        "title": "A quiet winner",
        "body": "The actors are wonderful and the end is moving.",
    }
    assert data.texts[0] == first.text


def test_lists_of_spans_and_pairs(tmp_path: Path) -> None:
    path = lines(tmp_path, {"premise": "a film", "hypothesis": "it is good", "units": [[2, 6], [6, 10, 1]]})
    [row] = raison.data.load(path).rows
    assert [(unit.segment, unit.text) for unit in row.units] == [(0, "film"), (1, "good")]


def test_rows_of_a_parquet_file_may_name_different_parts(tmp_path: Path) -> None:
    """Such a file has the names of all rows in every row, with nulls."""
    parquet, arrow = pytest.importorskip("pyarrow.parquet"), pytest.importorskip("pyarrow")
    rows = [{"text": "Almost good", "units": {"title": [0, 6]}}, {"text": "Good songs", "units": {"body": [0, 4]}}]
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "texts.parquet")
    found = [
        [(unit.name, unit.text) for unit in row.units] for row in raison.data.load(tmp_path / "texts.parquet").rows
    ]
    assert found == [[("title", "Almost")], [("body", "Good")]]


def test_rows_without_units_leave_the_texts_as_they_are(tmp_path: Path) -> None:
    data = raison.data.load(lines(tmp_path, {"text": "a film", "units": [[2, 6]]}, {"text": "fine", "units": None}))
    assert not data.has_units
    assert data.parted == ("a film", "fine")


@pytest.mark.parametrize(
    ("units", "said"), [([[2, 60]], "out of range"), ([[2, 6], [0, 1]], "begins before"), ({"x": [3, 3]}, "empty")]
)
def test_wrong_spans_are_broken_lines(tmp_path: Path, units: object, said: str) -> None:
    path = lines(tmp_path, {"text": "good", "units": [[0, 4]]}, {"text": "a film", "units": units})
    with pytest.raises(DataError, match=f"line 2: .*{said}"):
        raison.data.load(path)
    assert len(raison.data.load(path, skip_bad=True).broken) == 1


def test_a_column_of_numbers_is_no_column_of_spans(tmp_path: Path) -> None:
    [row] = raison.data.load(lines(tmp_path, {"text": "good", "units": 3})).rows
    assert row.units == ()


def test_a_cut_text_keeps_the_parts_that_are_left(tmp_path: Path) -> None:
    data = raison.data.load(lines(tmp_path, {"text": "a film or two", "units": {"x": [2, 6], "y": [7, 13]}}))
    [row] = first_words(data, 3).rows
    assert [unit.name for unit in row.units] == ["x"]
