"""Rows of a file are explained together where this saves passes, and a bad one stops no other."""

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from raison.core.errors import InputError
from raison.core.model import LanguageModel
from raison.data import Row
from raison.data.streams import Item
from raison.explaining.files.citations import CitationRows
from raison.explaining.files.explained_rows import RowExplainer, explain_rows
from raison.explaining.files.outputs import OutputRows
from raison.explaining.files.texts import TextRows
from raison.methods import CATALOGUE
from raison.runs.files.flat_records import Explains, FlatRecord
from tests.toys import Linear

ITEMS = [Item(number, "rows.txt", str(number), "", Row(f"text {number}", None, number + 1)) for number in range(4)]


class Counted(RowExplainer[LanguageModel]):
    """Notes which rows are explained together, and refuses some of them."""

    explains: ClassVar[Explains] = "predictions"
    method = CATALOGUE.create("random")

    def __init__(self, bad: Sequence[int]) -> None:
        self.bad = bad
        self.unreadable: tuple[int, ...] = ()
        self.asked: list[list[int]] = []
        self.checked: list[int] = []

    def stated(self) -> dict[str, Any]:
        return {}

    def standing(self, model: LanguageModel) -> LanguageModel:
        return model

    def check(self, model: LanguageModel, row: Row) -> None:
        number = int(str(row.text).split()[1])
        self.checked.append(number)
        if number in self.unreadable:
            raise InputError("it is blank")

    def try_one(self, model: LanguageModel, row: Row) -> None:
        pass

    def records(self, model: LanguageModel, items: Sequence[Item]) -> list[FlatRecord]:
        self.asked.append([item.row for item in items])
        if any(item.row in (*self.bad, *self.unreadable) for item in items):
            raise InputError("it is too long")
        return [{"row": item.row} for item in items]


class Together(Counted):
    """Rows share passes."""

    together: ClassVar[bool] = True


class Apart(Counted):
    """Rows share nothing."""

    together: ClassVar[bool] = False


@pytest.mark.parametrize(
    ("how", "asked"),
    [
        (Together([]), [[0, 1, 2, 3]]),
        (Together([3]), [[0, 1, 2, 3], [0], [1], [2], [3]]),
        (Apart([]), [[0], [1], [2], [3]]),
        (Apart([3]), [[0], [1], [2], [3]]),
        (Apart([0]), [[0], [1], [2], [3]]),
    ],
)
def test_a_bad_row_repeats_only_what_was_explained_with_it(how: Counted, asked: list[list[int]]) -> None:
    results = explain_rows(Linear(), ITEMS, how)
    assert how.asked == asked
    assert [record["row"] for record in results.records] == [row for row in range(4) if row not in how.bad]
    assert [(one.row, one.reason) for one in results.rejected] == [(row, "it is too long") for row in how.bad]


@pytest.mark.parametrize("how", [Together([0]), Apart([0])])
def test_a_single_bad_row_is_tried_once(how: Counted) -> None:
    assert [one.row for one in explain_rows(Linear(), ITEMS[:1], how).rejected] == [0]
    assert how.asked == [[0]]


def test_rows_that_are_explained_together_are_not_checked_before() -> None:
    how = Together([])
    explain_rows(Linear(), ITEMS, how)
    assert how.checked == []
    how.unreadable = (1,)
    results = explain_rows(Linear(), ITEMS, how)
    assert how.checked == [0, 1, 2, 3]
    assert how.asked[1:] == [[0, 1, 2, 3], [0, 2, 3]]
    assert [record["row"] for record in results.records] == [0, 2, 3]
    assert [(one.row, one.reason) for one in results.rejected] == [(1, "it is blank")]


def test_rows_that_share_nothing_are_checked_before_any_is_explained() -> None:
    how = Apart([3])
    how.unreadable = (1,)
    results = explain_rows(Linear(), ITEMS, how)
    assert how.asked == [[0], [2], [3]]
    assert [(one.row, one.reason) for one in results.rejected] == [(1, "it is blank"), (3, "it is too long")]


def test_only_predictions_are_explained_together() -> None:
    assert (TextRows.together, OutputRows.together, CitationRows.together) == (True, False, False)
