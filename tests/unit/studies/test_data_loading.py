"""The rows that a study file asks for."""

from pathlib import Path
from typing import Any

import pytest

from raison.core.errors import DataError
from raison.data import Dataset, load
from raison.data.lengths import Lengths
from raison.studies import data_loading
from raison.studies.data_loading import load_rows, load_some_and_all
from raison.studies.entries import KnownFeatures, StudyData


def test_the_encoding_of_a_file_is_the_one_named(tmp_path: Path) -> None:
    path = tmp_path / "films.tsv"
    path.write_bytes("text\tlabel\nein schöner Film\tgut\nein öder Film\tschlecht\n".encode("latin-1"))
    assert load_rows(StudyData(str(path), encoding="latin-1"), None).texts == ("ein schöner Film", "ein öder Film")
    with pytest.raises(DataError, match="the byte 0xf6 is not utf-8"):
        load_rows(StudyData(str(path)), None)


def test_the_limit_of_a_call_takes_the_first_of_a_draw(tmp_path: Path) -> None:
    path = tmp_path / "numbers.txt"
    path.write_text("".join(f"number {n}\n" for n in range(600)))
    entry = StudyData(str(path), limit=50, sample=3)
    few, many = set(load_rows(entry, 20).texts), set(load_rows(entry, None).texts)
    assert (len(few), len(many)) == (20, 50)
    assert few < many


@pytest.mark.parametrize(
    ("asked", "reads"),
    [
        ({"limit": 50, "sample": 3}, 1),
        ({"lengths": Lengths(longest=2), "limit": 30}, 1),
        ({"limit": 50}, 2),
        ({"limit": 20}, 1),
        ({"sample": 3, "known_features": KnownFeatures(("blib", "blob"))}, 1),
    ],
)
def test_some_rows_and_all_are_those_of_two_calls_and_a_draw_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any], reads: int
) -> None:
    path = tmp_path / "numbers.txt"
    path.write_text("".join(f"number {n}\n" for n in range(600)))
    entry = StudyData(str(path), **asked)
    read: list[object] = []

    def counted(source: str, *given: Any, **named: Any) -> Dataset:
        read.append(named["limit"])
        return load(source, *given, **named)

    monkeypatch.setattr(data_loading, "load_data", counted)
    some, whole = load_some_and_all(entry, 20)
    assert len(read) == reads
    assert (some, whole) == (load_rows(entry, 20), load_rows(entry, None))
    assert len(some) == 20


def test_the_first_rows_are_loaded_although_a_later_one_is_broken(tmp_path: Path) -> None:
    path = tmp_path / "films.tsv"
    path.write_text("text\tlabel\ngood film\tgood\nbad film\tbad\n\tbad\n")
    some, whole = load_some_and_all(StudyData(str(path)), 2)
    assert (some.texts, whole) == (("good film", "bad film"), None)
    with pytest.raises(DataError, match="line 4"):
        load_some_and_all(StudyData(str(path)), 3)


def test_rows_that_cannot_be_read_are_left_out_if_the_study_says_so(tmp_path: Path) -> None:
    path = tmp_path / "films.tsv"
    path.write_text("text\tlabel\ngood film\tgood\n\tbad\nbad film\tbad\n")
    with pytest.raises(DataError, match=r"line 3: .*skip_bad"):
        load_rows(StudyData(str(path)), None)
    assert load_rows(StudyData(str(path), skip_bad=True), None).texts == ("good film", "bad film")
