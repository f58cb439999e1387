"""Which class a label is: by its name, or by a number that means the same class in every part of a data set."""

from dataclasses import replace
from pathlib import Path

import pytest

from raison.core.errors import InputError
from raison.data import Dataset, Row, load_file
from raison.data.dataset import numbered

NAMES = ("one", "two", "three")


def rows(*labels: int) -> Dataset:
    return Dataset("d", tuple(Row(f"text {place}", label, place) for place, label in enumerate(labels)))


def test_numbers_that_are_names_of_classes_go_by_name() -> None:
    rows = (Row("a", 1, 1), Row("b", 2, 2))
    assert Dataset("d", rows).class_indices(("1", "2", "3")) == (0, 1)
    assert Dataset("d", (Row("a", -1, 1), Row("b", 4, 2))).class_indices(("4", "-1")) == (1, 0)
    # As soon as one number is no name, all of them are places.
    assert Dataset("d", (Row("a", 0, 1), Row("b", 1, 2))).class_indices(("1", "2")) == (0, 1)


def test_numbers_with_known_names_go_by_name() -> None:
    named = Dataset("d", (Row("a", 0, 1), Row("b", 1, 2)), labels=("No", "yes"))
    assert named.class_indices(("yes", "no")) == (1, 0)
    # Names that the model does not have say nothing: then the number is the class.
    assert named.class_indices(("LABEL_0", "LABEL_1")) == (0, 1)
    with pytest.raises(InputError, match="row 3"):
        Dataset("d", (Row("a", 2, 3),), labels=("x", "y")).class_indices(("LABEL_0", "LABEL_1"))


def test_labels_become_class_numbers() -> None:
    named = Dataset("d", (Row("a", "Yes", 1), Row("b", "no", 2)))
    assert named.class_indices(("no", "yes")) == (1, 0)
    from_one = Dataset("d", (Row("a", 1, 1), Row("b", 3, 2)))
    assert from_one.class_indices(("x", "y", "z")) == (0, 2)
    from_zero = Dataset("d", (Row("a", 0, 1), Row("b", 2, 2)))
    assert from_zero.class_indices(("x", "y", "z")) == (0, 2)
    with pytest.raises(InputError, match="neither the label 0 nor 3, so its numbers may count .* from 0 or from 1"):
        Dataset("d", (Row("a", 1, 1), Row("b", 2, 2))).class_indices(("x", "y", "z"))
    for row in (Row("a", 7, 4), Row("a", "maybe", 4), Row("a", None, 4)):
        with pytest.raises(InputError, match="row 4"):
            Dataset("d", (row,)).class_indices(("no", "yes"))


def test_a_part_of_a_data_set_counts_as_the_whole_does() -> None:
    whole = rows(1, 2, 3, 1)
    for part in ((0, 1), (3,), (0, 1, 2)):
        taken = replace(whole, rows=tuple(whole.rows[place] for place in part))
        assert taken.class_indices(NAMES) == tuple(whole.class_indices(NAMES)[place] for place in part)


def test_data_sets_of_one_task_count_alike() -> None:
    train, test = rows(1, 2, 3).counted_with(None), rows(1, 2).counted_with(rows(1, 2, 3), None)
    assert train.class_indices(NAMES) == (0, 1, 2)
    assert test.class_indices(NAMES) == (0, 1)
    named = numbered(test, NAMES)
    assert [row.label for row in named.rows] == [0, 1]
    assert named.labels == NAMES
    assert named.class_indices(NAMES) == (0, 1)


@pytest.mark.parametrize(
    ("labels", "limit", "expected"),
    [
        ((1, 1, 2, 3), 2, (0, 0)),
        ((1, 1, 2, 3), None, (0, 0, 1, 2)),
        ((1, 1, 2, 0), 2, (1, 1)),
        ((0, 1, 2, 1), 1, (0,)),
    ],
)
def test_the_rest_of_a_file_decides_what_its_first_rows_count_from(
    labels: tuple[int, ...], limit: int | None, expected: tuple[int, ...], tmp_path: Path
) -> None:
    file = tmp_path / "texts.csv"
    file.write_text("text,label\n" + "".join(f"text {place},{label}\n" for place, label in enumerate(labels)))
    assert load_file(file, limit=limit).class_indices(NAMES) == expected


def test_rows_that_were_not_asked_for_need_not_be_readable(tmp_path: Path) -> None:
    file = tmp_path / "texts.csv"
    file.write_bytes(b"text,label\none,1\ntwo,2\n\xe9,3\nfour\n,\n")
    assert load_file(file, limit=2).numbers == (1, 2)
