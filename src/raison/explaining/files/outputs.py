"""Rows as prompts: the language model's output for each is explained."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from raison.core.errors import InputError
from raison.core.inputs.chat import Chat
from raison.core.inputs.parts import Given, plain
from raison.core.method import Method
from raison.core.model import LanguageModel
from raison.core.results.generation import GenerationExplanation
from raison.data import Row
from raison.data.streams import Item
from raison.explaining.answers import standing_for
from raison.explaining.explain import explain
from raison.explaining.files.explained_rows import RowExplainer, row_of
from raison.explaining.generation import OutputContrast, Writing
from raison.explaining.given_texts import InputOptions
from raison.explaining.settings import Settings
from raison.models.adapters.writing.writer import Writer
from raison.progress import is_shown
from raison.runs.files.flat_records import FlatRecord, record_of_output


@dataclass(frozen=True)
class OutputRows(RowExplainer[Writer]):
    """The arguments of `explain` for a generative model. With `chat`, a row is a message of the user."""

    explains = "outputs"
    together = False
    method: Method
    settings: Settings
    writing: Writing
    language: str | None = None
    chat: bool = False

    def stated(self) -> dict[str, Any]:
        return asdict(self.settings) | asdict(self.writing) | {"language": self.language, "chat": self.chat}

    def standing(self, model: Writer) -> LanguageModel:
        return standing_for(model)

    def check(self, model: Writer, row: Row) -> None:
        [prompt] = InputOptions(self.settings.unit, None, None, self.language).prompts([self._prompt(row)]).texts
        if isinstance(prompt, tuple):
            raise InputError("a prompt is a single text, and this is a pair: join the two.")
        model.prompt(prompt)

    def try_one(self, model: Writer, row: Row) -> None:
        self._explained(model, row)

    def records(self, model: Writer, items: Sequence[Item]) -> list[FlatRecord]:
        return [record_of_output(item, self._explained(model, row_of(item))) for item in items]

    def _contrast(self, row: Row) -> OutputContrast:
        """The row's contrast, or the one for all rows. Raises InputError if there are both."""
        if row.contrast is None:
            return self.writing.contrast
        if self.writing.contrast is not None:
            raise InputError("contrast= and a contrast column exclude each other: leave contrast= out.")
        return list(row.contrast) if isinstance(row.contrast, tuple) else row.contrast

    def _output(self, row: Row) -> str | None:
        """The row's output, or the one for all rows; None if the model writes it. Raises InputError if there are
        both."""
        if row.output is None:
            return self.writing.output
        if self.writing.output is not None:
            raise InputError("output= and output_column= exclude each other: leave output= out.")
        return row.output

    def _prompt(self, row: Row) -> Given | Chat:
        text = plain(row.given)
        return Chat(({"role": "user", "content": text},)) if self.chat and isinstance(text, str) else row.given

    def _explained(self, model: Writer, row: Row) -> GenerationExplanation:
        settings = self.settings
        prompt: Any = [self._prompt(row)]
        [explanation] = explain(
            model,
            prompt,
            self.method,
            **settings.keywords(),
            language=self.language,
            output=self._output(row),
            max_new_tokens=self.writing.max_new_tokens,
            contrast=self._contrast(row),
            earlier=self.writing.earlier,
            progress=is_shown(),
        )
        return explanation
