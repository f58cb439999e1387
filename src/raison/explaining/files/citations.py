"""Rows as questions with their sources: which of these the statements of each answer depend on."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from raison.core.errors import DataError, InputError
from raison.core.inputs.chat import Chat
from raison.core.method import Method
from raison.core.model import LanguageModel
from raison.core.results.citations import Citations
from raison.data import Row
from raison.data.question_rows import QuestionRow
from raison.data.streams import Item
from raison.explaining.answers import standing_for
from raison.explaining.cite import cited
from raison.explaining.files.explained_rows import RowExplainer, row_of
from raison.explaining.sources.answer_statements import AnswerRequest
from raison.explaining.sources.citation_settings import CitationSettings
from raison.explaining.sources.sourced_prompt import sourced_prompt
from raison.models.adapters.writing.writer import Writer
from raison.runs.files.flat_records import FlatRecord, records_of_citations


@dataclass(frozen=True)
class CitationRows(RowExplainer[Writer]):
    """The arguments of `cite`."""

    explains = "citations"
    together = False
    settings: CitationSettings

    @property
    def method(self) -> Method:  # type: ignore[override]
        return self.settings.method

    def stated(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self.settings).items() if name != "method"}

    def standing(self, model: Writer) -> LanguageModel:
        return standing_for(model)

    def check(self, model: Writer, row: Row) -> None:
        question = _asked(row)
        try:
            sourced_prompt(model, _question(question), question.sources, self.settings.template)
        except DataError as error:
            # The template was read before: this is about the names of sources.
            raise InputError(str(error)) from None
        self._wanted(question)

    def try_one(self, model: Writer, row: Row) -> None:
        """Without lights: they cost the most, and none of their settings can be invalid."""
        CitationRows(replace(self.settings, draws=0))._cited(model, row)

    def records(self, model: Writer, items: Sequence[Item]) -> list[FlatRecord]:
        return [record for item in items for record in records_of_citations(item, self._cited(model, row_of(item)))]

    def _wanted(self, question: QuestionRow) -> AnswerRequest:
        return AnswerRequest(question.answer, None, self.settings.max_new_tokens if question.answer is None else None)

    def _cited(self, model: Writer, row: Row) -> Citations:
        question = _asked(row)
        return cited(model, _question(question), question.sources, self._wanted(question), self.settings)


def _asked(row: Row) -> QuestionRow:
    assert row.asked is not None
    return row.asked


def _question(row: QuestionRow) -> str | Chat:
    return row.question if isinstance(row.question, str) else Chat(row.question)
