"""The explanations of some rows of a file, or why there are none."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from raison.core.errors import InputError, NonFiniteError
from raison.core.inputs.parts import Given
from raison.core.method import Method
from raison.core.metric import Metric
from raison.core.model import LanguageModel
from raison.core.registry import label_of
from raison.core.results.explanation import Explanation
from raison.data import BrokenLine
from raison.data.streams import Item
from raison.explaining.explain import explain
from raison.explaining.settings import Settings
from raison.explaining.texts import Reading, Side
from raison.runs.files.folder import Rejected
from raison.runs.files.rows import Record, record_of

OF_A_ROW = (InputError, NonFiniteError)
"""Errors that are about a text, not about the model or the method."""


@dataclass(frozen=True, slots=True)
class How:
    """How rows are explained: the arguments of `explain`."""

    method: Method
    settings: Settings
    units: Side | None = None
    language: str | None = None
    select: str | Metric | None = None
    threshold: float | None = None

    def stated(self) -> dict[str, Any]:
        """The settings as plain values."""
        chooser = self.select if self.select is None or isinstance(self.select, str) else label_of(self.select)
        own = {"units": self.units, "language": self.language, "select": chooser, "threshold": self.threshold}
        return asdict(self.settings) | own

    def explained(self, model: LanguageModel, texts: Sequence[Given]) -> list[list[Explanation]]:
        """The explanations of each text, more than one only with target="each". Raises RaisonError."""
        settings = self.settings
        found: list[Any] = explain(
            model,
            list(texts),
            self.method,
            unit=settings.unit,
            units=self.units,
            language=self.language,
            target=settings.target,
            of=settings.of,
            removal=settings.removal,
            seed=settings.seed,
            truncate=settings.truncate,
            precision=settings.precision,
            select=self.select,
            threshold=self.threshold,
            progress=False,
        )
        return [one if isinstance(one, list) else [one] for one in found]

    def check(self, model: LanguageModel, text: Given) -> None:
        """Raise InputError for a text that the model cannot read."""
        units: Any = self.units
        texts, unit = Reading(self.settings.unit, units, None, self.language).several([text])
        model.encode(texts, unit, self.settings.truncate)


@dataclass(frozen=True, slots=True)
class Explained:
    """What became of some rows."""

    records: list[Record]
    rejected: list[Rejected]


def explain_rows(model: LanguageModel, items: Sequence[Item], how: How) -> Explained:
    """Explain rows together; where that cannot be, one by one, so that one text does not keep the others from theirs.

    Raises RaisonError for what is no text's fault.
    """
    readable, rejected = [], []
    for item in items:
        reason = _against(model, item, how)
        if reason:
            rejected.append(_rejected(item, reason))
        else:
            readable.append(item)
    try:
        found = how.explained(model, list(map(_given, readable))) if readable else []
    except OF_A_ROW:
        records: list[Record] = []
        for item in readable:
            try:
                records += _records([item], how.explained(model, [_given(item)]))
            except OF_A_ROW as error:
                rejected.append(_rejected(item, str(error)))
        return Explained(records, sorted(rejected, key=lambda one: one.row))
    return Explained(list(_records(readable, found)), rejected)


def _against(model: LanguageModel, item: Item, how: How) -> str:
    """Why a row cannot be explained, as far as it can be told beforehand."""
    if isinstance(item.entry, BrokenLine):
        return item.entry.reason
    try:
        how.check(model, item.entry.given)
    except InputError as error:
        return str(error)
    return ""


def _given(item: Item) -> Given:
    assert not isinstance(item.entry, BrokenLine)
    return item.entry.given


def _records(items: Sequence[Item], found: Sequence[Sequence[Explanation]]) -> Iterator[Record]:
    for item, explanations in zip(items, found, strict=True):
        for number, explanation in enumerate(explanations):
            yield record_of(item, number, explanation)


def _rejected(item: Item, reason: str) -> Rejected:
    return Rejected(item.row, item.source, item.line, item.id, reason)
