"""Rows of questions with their sources as input of evaluations: statements of answers, and their gold sources."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

from raison.core.errors import InputError
from raison.core.inputs.chat import Chat
from raison.core.inputs.parts import Given
from raison.core.inputs.rationale import Rationale, Span
from raison.core.inputs.unit import PART, Granularity, check_unit
from raison.core.model import LanguageModel
from raison.data.dataset import Dataset
from raison.data.question_rows import Gold, QuestionRow
from raison.data.questions import row_of
from raison.explaining.batch import check_model
from raison.explaining.given_texts import InputOptions
from raison.explaining.measuring import Annotations
from raison.explaining.ranking import fitting, leading_pairs
from raison.explaining.sources.answer_statements import AnswerRequest, stated_answer
from raison.explaining.sources.sourced_prompt import SourcedPrompt, sourced_prompt
from raison.models.adapters.writing.statements import Statements
from raison.models.adapters.writing.writer import Writer
from raison.models.tokens.sourced import Sourced
from raison.models.tokens.token_rows import name_of as name_of_text
from raison.models.tokens.written_answer import WrittenAnswer
from raison.text.answer_match import same_answer
from raison.text.sourced import SourceTemplate, find

PROBE = QuestionRow(0, "What is it?", {"1": "It is a test."}, "A test.")
"""A question and answer that represent everything a model writes, for checks of the model alone."""

QuestionRows = Iterable[QuestionRow | Mapping[str, Any]]
"""Questions with their sources: rows as `raison.data.questions` reads them, or mappings with the same names."""


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers, generated or given. `gold` has a rationale for each, empty where a row gives no gold source; () if none
    does."""

    answers: tuple[WrittenAnswer, ...]
    gold: Annotations

    @property
    def texts(self) -> list[tuple[str, str]]:
        """A text that identifies each answer."""
        return [answered.texts for answered in self.answers]

    @property
    def have_sources(self) -> bool:
        return all(answered.source.sources for answered in self.answers)

    def of(self, writer: Writer) -> Statements:
        """The model of their statements. Raises InputError for none, or for two that one text names."""
        if not self.answers:
            raise InputError("no answer given: give at least one question, or one prompt.")
        return Statements(writer, self.answers)


@dataclass(frozen=True, slots=True)
class Judged:
    """The input of explanations and their evaluation: a model, texts, units, and rationales."""

    model: LanguageModel
    texts: tuple[Given, ...]
    unit: Granularity
    answers: Answers | None = None

    @property
    def gold(self) -> Annotations:
        return () if self.answers is None else self.answers.gold

    def loading(self, load: Callable[[], LanguageModel | Writer] | None) -> Callable[[], LanguageModel] | None:
        """How another process loads the model, given how it loads the caller's model."""
        if load is None or self.answers is None:
            return cast("Callable[[], LanguageModel] | None", load)
        return partial(_loaded, load, self.answers)


def _loaded(load: Callable[[], LanguageModel | Writer], answers: Answers) -> LanguageModel:
    writer = load()
    assert isinstance(writer, Writer), "the model wrote these answers"
    return answers.of(writer)


def judged(
    model: LanguageModel | Writer,
    texts: Any,
    reading: InputOptions,
    template: SourceTemplate | str | Path | None = None,
    truncate: bool = False,
) -> Judged:
    """Texts and the model that predicts them; a language model that writes answers them first.

    Of queries with documents that the model ranks, the first two documents are compared.

    Raises InputError, TextTooLongError, DataError.
    """
    if isinstance(model, Writer):
        if (reading.units, reading.column, reading.language) != (None, None, None):
            raise InputError("units=, text= and language= apply to classified texts only: leave them out.")
        answers = texts if isinstance(texts, Answers) else answers_of(model, texts, template)
        unit = reading.unit if reading.unit is not None else PART if answers.have_sources else "word"
        return Judged(answers.of(model), tuple(answers.texts), check_unit(unit), answers)
    check_model(model)
    if template is not None:
        raise InputError("template= applies to generative language models only: leave it out.")
    given, unit = reading.several(leading_pairs(model, texts, truncate))
    return Judged(fitting(model, given), tuple(given), unit)


def answers_of(writer: Writer, rows: Any, template: SourceTemplate | str | Path | None = None) -> Answers:
    """The answers to rows of questions, or to prompts; the model writes those that no row gives.

    Raises InputError, TextTooLongError, DataError, with the number of the row.
    """
    chosen = template if template is None else find(template)
    answers, gold = [], []
    listed = _listed(rows)
    for number, row in enumerate(listed):
        try:
            one = _asked(writer, row, chosen)
            answer = row.answer if isinstance(row, QuestionRow) else None
            answers.append(stated_answer(writer, one, AnswerRequest(answer)).answered)
            gold.append(_marked(one.source, row.gold) if isinstance(row, QuestionRow) else ())
        except InputError as error:
            raise type(error)(f"{name_of_text(number, len(listed))}: {error}") from None
    if not answers:
        raise InputError("no text given: pass a list of at least one question with its sources.")
    return Answers(tuple(answers), tuple((one,) for one in gold) if any(gold) else ())


def own_answers(writer: Writer, answers: Answers) -> Answers:
    """The answers that the model itself gives, ignoring case, articles, punctuation and white space."""
    kept = [number for number, answered in enumerate(answers.answers) if _is_own(writer, answered)]
    gold = tuple(answers.gold[number] for number in kept) if answers.gold else ()
    return Answers(tuple(answers.answers[number] for number in kept), gold)


def _is_own(writer: Writer, answered: WrittenAnswer) -> bool:
    try:
        continuation = writer.continuation(answered.source.prompt, len(answered.output.ids))
    except InputError:
        # The model ends the text right after the prompt.
        return False
    return same_answer(continuation.text, answered.output.text)


def standing_for(writer: Writer) -> LanguageModel:
    """A model of the statements of a fixed answer, which identifies a generative language model."""
    return answers_of(writer, [PROBE], "plain").of(writer)


def _listed(rows: Any) -> list[QuestionRow | str]:
    """Rows and prompts. Raises InputError or DataError."""
    if isinstance(rows, str | Mapping) or not isinstance(rows, Iterable | Dataset):
        raise InputError(
            "a generative language model needs a list of several texts: rows with 'question', 'sources' and 'answer', "
            "or prompts."
        )
    if isinstance(rows, Dataset):
        if not rows.questions:
            raise InputError(
                f"{rows.name} has no questions with sources, and a generative language model needs them: give such "
                "data, or a prompt with label words that makes the model a classifier."
            )
        return [*rows.questions]
    given = list(rows)
    listed = [_row(one, number, name_of_text(number, len(given))) for number, one in enumerate(given)]
    if len({isinstance(one, str) for one in listed}) > 1:
        raise InputError("some texts have sources and others have none: evaluate them in separate calls.")
    return listed


def _row(one: object, number: int, name: str) -> QuestionRow | str:
    if isinstance(one, QuestionRow | str):
        return one
    if isinstance(one, Mapping):
        return row_of(one, number, name)
    raise InputError(f"{name} is {one!r:.60}: give a row with 'question', 'sources' and 'answer', or a prompt.")


def _asked(writer: Writer, row: QuestionRow | str, template: SourceTemplate | None) -> SourcedPrompt:
    if isinstance(row, str):
        return SourcedPrompt(row, Sourced(writer.prompt(row), (), (), (), ()), "")
    question = row.question if isinstance(row.question, str) else Chat(row.question)
    return sourced_prompt(writer, question, row.sources, template)


def _marked(source: Sourced, gold: Sequence[Gold]) -> Rationale:
    """What an answer is known to rest on, as characters of the prompt. Raises InputError for an unknown source."""
    places = {unit.name: unit for unit in source.sources}
    for one in gold:
        if one.source not in places:
            raise InputError(f"gold names '{one.source}', which is not one of the sources {', '.join(places)}.")
    return tuple(
        Span(
            places[one.source].start + one.start,
            places[one.source].end if one.end is None else places[one.source].start + one.end,
        )
        for one in gold
    )
