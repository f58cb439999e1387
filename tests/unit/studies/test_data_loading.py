"""The rows that a study file asks for."""

from pathlib import Path

import pytest

from raison.core.errors import DataError
from raison.studies.data_loading import load_rows
from raison.studies.entries import StudyData


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
