"""A prompt with sources: a question and texts in a template, or a conversation that contains them."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raison.core.errors import InputError
from raison.core.inputs.chat import Chat, Message
from raison.core.results.citations import check_ids
from raison.models.adapters.writing.writer import Writer
from raison.models.tokens.continuation import TokenizedPrompt
from raison.models.tokens.sourced import Sourced, sourced
from raison.text.segment import trim
from raison.text.sourced import Filled, SourcePlace, SourceTemplate, find
from raison.text.surrogates import joined, joined_within

Question = str | Chat | Sequence[Message]
Sources = Mapping[str, str] | Sequence[str] | Sequence[Mapping[str, str]]
"""Texts by id, in the order of the prompt: a mapping, or a list of {"id": ..., "text": ...}; strings in a list are
numbered from 1."""


@dataclass(frozen=True, slots=True)
class SourcedPrompt:
    """A prompt with its sources; `before` goes before a given answer, and the model's own answer ends at `stop`."""

    question: str
    source: Sourced
    template: str
    before: str = ""
    stop: str = ""


def sourced_prompt(
    writer: Writer, question: Question, sources: Sources | None, template: SourceTemplate | str | Path | None
) -> SourcedPrompt:
    """The prompt of a question with sources. Raises InputError, UnknownNameError or DataError."""
    question = joined_within(question)
    if not isinstance(question, str):
        if not isinstance(question, Chat | list | tuple):
            raise InputError(f"the question is {question!r:.60}: give a text, or a conversation as a list of messages.")
        chat = question if isinstance(question, Chat) else Chat(tuple(question))
        if template is not None:
            raise InputError("a conversation needs no template: leave template= out.")
        return _conversation(writer, chat, None if sources is None else _named(sources))
    if not question.strip():
        raise InputError("the question is empty or blank.")
    if sources is None:
        raise InputError("no source given: pass sources={'id': 'text', ...}, or a conversation that contains them.")
    default = "chat" if writer.chats else "plain"
    chosen = find(default if template is None else template)
    filled = chosen.fill(_named(sources), question)
    if chosen.chat:
        prompt = writer.prompt(Chat(({"role": "user", "content": filled.text},)))
        places = _places_in(prompt.text, filled)
    else:
        prompt, places = writer.prompt(filled.text, filled.given), list(filled.places)
    return SourcedPrompt(question, sourced(prompt, places), chosen.name, chosen.before, chosen.stop)


def _places_in(chat: str, filled: Filled) -> list[SourcePlace]:
    """The sources' places in a rendered chat."""
    # Most templates strip the white space around a message: what follows it there is the template's own.
    start, end = trim(filled.text, 0, len(filled.text))
    found = chat.find(filled.text[start:end])
    assert found >= 0, "a chat whose template changes its messages is refused"
    return [place.within(start, end).shifted(found - start) for place in filled.places]


def _named(sources: Sources) -> dict[str, str]:
    """Texts by id. Raises InputError."""
    if isinstance(sources, str | bytes | set | frozenset) or not isinstance(sources, Iterable):
        raise InputError(f"sources are {sources!r:.60}: give {{'id': 'text', ...}}, or a list of texts.")
    items = list(sources.items()) if isinstance(sources, Mapping) else list(map(_entry, itertools.count(1), sources))
    if not items:
        raise InputError("no source given: pass at least one.")
    ids = [name for name, _ in items]
    if twice := next((name for name in ids if ids.count(name) > 1), None):
        raise InputError(f"two sources have the id '{twice:.40}': give each its own.")
    check_ids(ids)
    named = dict(items)
    for name, text in named.items():
        if not isinstance(text, str):
            raise InputError(f"the source '{name}' is {text!r:.40}; it must be a string.")
        if not text.strip():
            raise InputError(f"the source '{name}' is empty or blank: leave it out.")
    return {name: joined(text) for name, text in named.items()}


def _entry(number: int, source: Any) -> tuple[str, Any]:
    """The id and the text of a list's entry."""
    if isinstance(source, Mapping) and isinstance(source.get("id"), str) and "text" in source:
        return source["id"], source["text"]
    return str(number), source


def _conversation(writer: Writer, chat: Chat, named: dict[str, str] | None) -> SourcedPrompt:
    """A chat whose tools' results and documents are the sources, or the texts that the caller names in it."""
    prompt = writer.prompt(chat)
    places = _held(prompt, chat) if named is None else [_only(prompt, name, text) for name, text in named.items()]
    places.sort(key=lambda place: place.start)
    for before, after in itertools.pairwise(places):
        if after.start < before.end:
            raise InputError(f"the sources '{before.id}' and '{after.id}' overlap: give sources without overlaps.")
    users = [message.get("content") for message in chat.messages if message.get("role") == "user"]
    question = users[-1] if users and isinstance(users[-1], str) else ""
    return SourcedPrompt(question, sourced(prompt, places), "conversation")


def _held(prompt: TokenizedPrompt, chat: Chat) -> list[SourcePlace]:
    """The results of tools and the documents, each with a unique id. Raises InputError if there is none."""
    parts: list[tuple[str, str]] = []
    for number, document in enumerate(chat.documents, 1):
        texts = [text for key, text in document.items() if key != "title"]
        parts += [(document.get("title", "").strip() or f"document {number}", text) for text in texts]
    for message in chat.messages:
        content: Any = message.get("content")
        if message.get("role") == "tool":
            results = [content] if isinstance(content, str) else [part["text"] for part in content or ()]
            name = message.get("name")
            parts += [(f"tool {name}" if isinstance(name, str) else "tool", text) for text in results]
    parts = [(name, text.strip()) for name, text in parts if text.strip()]
    if not parts:
        raise InputError(
            "the conversation has no result of a tool and no document: name its sources, sources={'id': 'text', ...}, "
            "each verbatim from a message."
        )
    starts: list[int] = []
    for name, text in parts:
        starts.append(next(start for start in _starts_of_part(prompt, name, text) if start not in starts))
    return [
        SourcePlace(unique, start, start, start + len(text), start + len(text))
        for unique, start, (_, text) in zip(_unique([name for name, _ in parts]), starts, parts, strict=True)
    ]


def _unique(names: Sequence[str]) -> list[str]:
    """Names that occur several times with numbers, such as "tool (1)", that make no other name."""
    unique: list[str] = []
    for name in names:
        numbered = (f"{name} ({number})" for number in itertools.count(1))
        free = (other for other in numbered if other not in names and other not in unique)
        unique.append(name if names.count(name) == 1 else next(free))
    return unique


def _starts_of_part(prompt: TokenizedPrompt, name: str, text: str) -> Iterator[int]:
    """Where contents begin that consist of a text, in the messages and documents of that name."""
    for first, last in prompt.regions:
        start, end = trim(prompt.text, first, last)
        if prompt.text[start:end] == text and any(
            part.name == name and part.start <= start and end <= part.end for part in prompt.parts
        ):
            yield start


def _only(prompt: TokenizedPrompt, name: str, given: str) -> SourcePlace:
    """A text that the caller names. Raises InputError unless it occurs exactly once in the conversation."""
    text = given.strip()
    starts = _occurrences(prompt, text)
    if len(starts) != 1:
        how = f"occurs {len(starts)} times" if starts else "does not occur"
        raise InputError(f"the source '{name}' {how} in the conversation: give text that occurs there exactly once.")
    return SourcePlace(name, starts[0], starts[0], starts[0] + len(text), starts[0] + len(text))


def _occurrences(prompt: TokenizedPrompt, text: str) -> list[int]:
    """Where a text begins in the contents of the conversation."""
    starts = []
    for start, end in prompt.regions:
        place = prompt.text.find(text, start, end)
        while place >= 0:
            starts.append(place)
            place = prompt.text.find(text, place + 1, end)
    return starts
