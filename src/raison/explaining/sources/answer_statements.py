"""The answer to a question, given or written by the language model, with its statements."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import index
from typing import Any, SupportsIndex

from raison.core.errors import InputError
from raison.explaining.sources.sourced_prompt import SourcedPrompt
from raison.models.adapters.writing.writer import Writer
from raison.models.tokens.continuation import Output, TokenizedPrompt
from raison.models.tokens.spelling import respelled, spelled_spans
from raison.models.tokens.written_answer import WrittenAnswer
from raison.text.segment import CharacterSpan, sentence_spans, trim

StatementSpans = Sequence[CharacterSpan]

NEW_TOKENS = 100


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """Which answer is explained: a given one or the model's own, and spans of it (None: its sentences)."""

    answer: str | None = None
    statements: StatementSpans | None = None
    max_new_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.statements is not None:
            _check_spans(self.statements)
        if self.answer is None:
            return
        if not isinstance(self.answer, str):
            raise InputError(f"the answer is {self.answer!r:.60}: give a string.")
        if self.max_new_tokens is not None:
            raise InputError("max_new_tokens is for the model's own answer: leave it out where answer= is given.")
        if not self.answer.strip():
            raise InputError("the answer is empty or blank: there is no statement to explain.")


def _is_whole(place: object) -> bool:
    return isinstance(place, SupportsIndex) and not isinstance(place, bool)


def _check_spans(spans: StatementSpans) -> None:
    """InputError unless all are pairs of whole numbers."""
    pairs = not isinstance(spans, str) and isinstance(spans, Sequence)
    if not pairs or not all(
        isinstance(span, Sequence) and len(span) == 2 and all(_is_whole(place) for place in span) for span in spans
    ):
        raise InputError(
            f"the statements are {spans!r:.60}: give spans of the answer in characters, [(start, end), ...], or leave "
            "them out for its sentences."
        )


@dataclass(frozen=True, slots=True)
class StatedAnswer:
    """An answer after its prompt, with notes about it."""

    answered: WrittenAnswer
    notes: dict[str, Any] = field(default_factory=dict)


def stated_answer(writer: Writer, sourced: SourcedPrompt, wanted: AnswerRequest) -> StatedAnswer:
    """The answer to the prompt. Raises InputError, TextTooLongError."""
    prompt, answer = sourced.source.prompt, wanted.answer
    notes: dict[str, Any] = {}
    if answer is None:
        count = NEW_TOKENS if wanted.max_new_tokens is None else wanted.max_new_tokens
        output = writer.continuation(prompt, count)
        if len(output.ids) == count:
            notes["cut"] = f"the answer reached max_new_tokens={count}: it may be cut off"
        stripped = output.text.lstrip()
        if sourced.stop and sourced.stop in stripped:
            end = output.text.index(stripped) + stripped.index(sourced.stop)
            output, notes = _until(writer, prompt, output, end), {}
    else:
        output, warning = writer.output(prompt, answer if answer[0].isspace() else sourced.before + answer)
        if warning is not None and sourced.before:
            notes["border"] = warning
        notes |= respelled(answer, output.text)
    text, spans = output.text.strip(), wanted.statements
    if spans is None:
        statements = sentence_spans(text)
    else:
        given = text if answer is None else answer
        statements = spelled_spans(given.strip(), text, _stripped(given, spans))
    return StatedAnswer(WrittenAnswer(sourced.source, output, tuple(statements)), notes)


def _until(writer: Writer, prompt: TokenizedPrompt, output: Output, end: int) -> Output:
    """An output up to a character: its own tokens, unless the character is inside one."""
    place = len(prompt.text) + end
    count = sum(last <= place for _, last in output.spans)
    inside = any(first < place < last for first, last in output.spans)
    return writer.output(prompt, output.text[:end])[0] if inside else writer.written(prompt, output.ids[:count])


def _stripped(answer: str, spans: StatementSpans) -> list[CharacterSpan]:
    """Spans of an answer in the answer without the white space around it, which belongs to no statement.

    Spans outside of the answer stay outside.
    """
    lead = len(answer) - len(answer.lstrip())
    moved = []
    for first, last in spans:
        start, end = index(first), index(last)
        if 0 <= start < end <= len(answer):
            start, end = trim(answer, start, end)
        moved.append((start - lead, end - lead))
    return moved
