"""Rows of a file turned into records, or into reasons for rejection."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from raison.core.errors import AnswerError, InputError, NonFiniteError, UnfitRequestError
from raison.core.method import Method
from raison.core.model import LanguageModel
from raison.data import BrokenLine, Row
from raison.data.streams import Item
from raison.models.adapters.writing.writer import Writer
from raison.runs.files.flat_records import Explains, FlatRecord
from raison.runs.files.folder import Rejected

OF_A_ROW = (InputError, NonFiniteError, AnswerError, UnfitRequestError)
"""Errors that are about a row, not about the model or the method. A server may give one text a meaningless
answer, such as other tokens at the seam; a server that is down, or a limit that is reached, concerns all rows."""

NO_PREDICTION = "no prediction in the text reaches the threshold"
M = TypeVar("M", bound=LanguageModel | Writer)


class RowExplainer(ABC, Generic[M]):
    """How the rows of a file are explained: the settings of an entry point, for one kind of models."""

    explains: ClassVar[Explains]
    together: ClassVar[bool]
    """Whether rows share passes; otherwise each is explained by itself."""
    method: Method

    @abstractmethod
    def stated(self) -> dict[str, Any]:
        """The settings as plain values."""

    @abstractmethod
    def standing(self, model: M) -> LanguageModel:
        """The fixed part of the model, the same in every process that works on the file."""

    @abstractmethod
    def check(self, model: M, row: Row) -> None:
        """Raise an error of OF_A_ROW for a row that the model cannot read."""

    @abstractmethod
    def try_one(self, model: M, row: Row) -> None:
        """Explain a row, to find invalid settings. Raises RaisonError."""

    @abstractmethod
    def records(self, model: M, items: Sequence[Item]) -> list[FlatRecord]:
        """The explanations of rows, computed together. Raises RaisonError, one of OF_A_ROW before any pass for a row
        that `check` refuses, as far as this is possible."""


@dataclass(frozen=True, slots=True)
class RowResults:
    """The results of some rows."""

    records: list[FlatRecord]
    rejected: list[Rejected]


def explain_rows(model: M, items: Sequence[Item], how: RowExplainer[M]) -> RowResults:
    """Explain rows together if they share passes, or one by one, so that one bad row does not block the others.

    Raises RaisonError for errors that are not about a row.
    """
    usable = [item for item in items if not isinstance(item.entry, BrokenLine)]
    rejected = [_rejected(item, item.entry.reason) for item in items if isinstance(item.entry, BrokenLine)]
    # A check reads a text as its explanation does: rows are checked only if one of them is refused.
    if (together := _explained_together(model, usable, how)) is not None:
        return _results(together, rejected, usable)
    readable = []
    for item in usable:
        reason = _against(model, item, how)
        if reason:
            rejected.append(_rejected(item, reason))
        else:
            readable.append(item)
    if len(readable) < len(usable) and (together := _explained_together(model, readable, how)) is not None:
        return _results(together, rejected, readable)
    records, explained = [], []
    for item in readable:
        try:
            records += how.records(model, [item])
            explained.append(item)
        except OF_A_ROW as error:
            rejected.append(_rejected(item, str(error)))
    return _results(records, rejected, explained)


def _explained_together(model: M, items: Sequence[Item], how: RowExplainer[M]) -> list[FlatRecord] | None:
    """The records of several rows that share passes; None if one of the rows is refused."""
    if how.together and len(items) > 1:
        with suppress(*OF_A_ROW):
            return how.records(model, items)
    return None


def _results(records: list[FlatRecord], rejected: list[Rejected], explained: Sequence[Item]) -> RowResults:
    """The results, with every row in one of the lists: a row has no record if no prediction reaches the threshold."""
    told = {record["row"] for record in records}
    empty = [_rejected(item, NO_PREDICTION) for item in explained if item.row not in told]
    return RowResults(records, sorted([*rejected, *empty], key=lambda one: one.row))


def row_of(item: Item) -> Row:
    """The row of a usable item."""
    assert isinstance(item.entry, Row)
    return item.entry


def _against(model: M, item: Item, how: RowExplainer[M]) -> str:
    """Why a row cannot be explained, as far as this is known beforehand."""
    try:
        how.check(model, row_of(item))
    except OF_A_ROW as error:
        return str(error)
    return ""


def _rejected(item: Item, reason: str) -> Rejected:
    return Rejected(item.row, item.source, item.line, item.id, reason)
