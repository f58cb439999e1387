"""Rows as texts whose predictions are explained."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from raison.core.inputs.unit import Side
from raison.core.method import Method
from raison.core.metric import Metric
from raison.core.model import LanguageModel
from raison.core.note_names import AMONG
from raison.core.registry import label_of
from raison.core.results.explanation import Explanation
from raison.core.targets.choices import TargetSpec
from raison.data import Row
from raison.data.streams import Item
from raison.explaining.explain import explain
from raison.explaining.files.explained_rows import RowExplainer, row_of
from raison.explaining.given_texts import InputOptions, against
from raison.explaining.ranking import fitting
from raison.explaining.settings import Settings
from raison.progress import is_shown
from raison.runs.files.flat_records import FlatRecord, record_of


@dataclass(frozen=True)
class TextRows(RowExplainer[LanguageModel]):
    """The arguments of `explain` for a model that predicts."""

    explains = "predictions"
    together = True
    method: Method
    settings: Settings
    units: Side | None = None
    language: str | None = None
    select: str | Metric | None = None
    threshold: float | None = None

    def stated(self) -> dict[str, Any]:
        chooser = self.select if self.select is None or isinstance(self.select, str) else label_of(self.select)
        options = {"units": self.units, "language": self.language, "select": chooser, "threshold": self.threshold}
        return asdict(self.settings) | options

    def standing(self, model: LanguageModel) -> LanguageModel:
        return model

    def check(self, model: LanguageModel, row: Row) -> None:
        units: Any = self.units
        texts, unit = InputOptions(self.settings.unit, units, None, self.language).several([row.given])
        reader = fitting(model, texts)
        reader.tokenized(texts, unit, self.settings.truncate)
        if row.contrast is not None:
            against(reader, self.settings.target, row.contrast)

    def try_one(self, model: LanguageModel, row: Row) -> None:
        self._explained(model, [row])

    def records(self, model: LanguageModel, items: Sequence[Item]) -> list[FlatRecord]:
        explained = self._explained(model, list(map(row_of, items)))
        return [
            record_of(item, number, explanation)
            for item, explanations in zip(items, explained, strict=True)
            for number, explanation in enumerate(explanations)
        ]

    def _explained(self, model: LanguageModel, rows: Sequence[Row]) -> list[list[Explanation]]:
        """The explanations of each text, more than one only with target="each"."""
        settings = self.settings
        pairs: TargetSpec = [against(model, settings.target, row.contrast) for row in rows if row.contrast is not None]
        explained: list[Any] = explain(
            model,
            [row.given for row in rows],
            self.method,
            **replace(settings, target=pairs or settings.target).keywords(),
            units=self.units,
            language=self.language,
            select=self.select,
            threshold=self.threshold,
            progress=is_shown(),
        )
        return [[*map(_unranked, one)] if isinstance(one, list) else [_unranked(one)] for one in explained]


def _unranked(e: Explanation) -> Explanation:
    """Without the rank among the rows that were explained together: they are only a part of the file."""
    notes = {name: note for name, note in e.notes.items() if name != AMONG}
    return e if len(notes) == len(e.notes) else replace(e, notes=notes)
