"""How a word is planted, and what is taken over."""

from pathlib import Path

import pytest

from raison.core.errors import DataError, InputError
from raison.studies.kinds.shortcuts.results import read as read_folder
from raison.studies.kinds.shortcuts.work import LabelledTexts, planted
from raison.studies.runner import run
from tests.work import prepare

TEXTS = LabelledTexts(tuple(f"text {number}" for number in range(60)), tuple(number % 3 for number in range(60)))


@pytest.mark.parametrize("classes", [[1], [0, 1], [0, 1, 2]])
@pytest.mark.parametrize("count", [5, 6, 7, 10, 20])
def test_as_many_rows_whatever_the_number_of_classes(classes: list[int], count: int) -> None:
    found = planted(TEXTS, "zyxel", classes, count, 0)
    labels = [label for text, label in zip(found.texts, found.labels, strict=True) if text.endswith(" zyxel")]
    assert len(labels) == count
    assert set(labels) == set(classes)
    shares = [labels.count(label) for label in classes]
    assert max(shares) - min(shares) <= 1


def test_a_class_with_too_few_rows_is_refused() -> None:
    with pytest.raises(InputError, match="21 rows of one class should have the word, and 20 of the 60 rows"):
        planted(TEXTS, "zyxel", [1], 21, 0)


def test_more_draws_than_the_folder_that_is_reused_has(tmp_path: Path) -> None:
    study = prepare(tmp_path) / "shortcuts.toml"
    run(study, tmp_path / "three", progress=False)
    study.write_text(study.read_text().replace("draws = 3", "draws = 5"))
    run(study, tmp_path / "reused", reuse=[tmp_path / "three"], progress=False)
    run(study, tmp_path / "alone", progress=False)
    found, alone = read_folder(tmp_path / "reused"), read_folder(tmp_path / "alone")
    assert found.found == alone.found
    assert found.progress == (2 * (2 + 5), 2 * (2 + 5))
    lines = (tmp_path / "reused" / "found.jsonl").read_text().splitlines()
    assert len(lines) == 14, "what was taken over is not written twice"


def test_a_record_of_another_row_is_refused(tmp_path: Path) -> None:
    study = prepare(tmp_path) / "shortcuts.toml"
    run(study, tmp_path / "one", progress=False)
    other = study.with_name("other.toml")
    other.write_text(study.read_text().replace("0.3", "0.35"))
    run(other, tmp_path / "two", progress=False)
    records = (tmp_path / "two" / "found.jsonl").read_bytes()
    (tmp_path / "one" / "found.jsonl").write_bytes(records)
    with pytest.raises(DataError, match="a record of the row 'planted 0.35'"):
        read_folder(tmp_path / "one")
