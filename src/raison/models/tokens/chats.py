"""A chat through the tokenizer's own template, with the places of what may be scored in it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from raison.core.errors import InputError
from raison.core.inputs.chat import Chat
from raison.core.inputs.unit import Unit
from raison.models.tokens.continuation import TokenizedPrompt, sealed_around, sealed_tokens
from raison.text.segment import CharacterSpan, trim

_REWRITTEN = (
    "the tokenizer's chat template changes the messages, so their words cannot be found in what the model reads: "
    "pass the rendered prompt as a string."
)
_SHAPE = "give dicts with the strings 'role' and 'content'"
_CONTENT = "; the content may also be a list of text parts, and None beside tool_calls"


@dataclass(frozen=True, slots=True)
class _Slot:
    """A string of the chat: its path within messages or documents, and the part that it belongs to."""

    path: tuple[str | int, ...]
    content: str
    part: int
    name: str


ChatTemplate = Callable[[Chat], str]
"""Renders a chat as the model's input, up to where its answer begins. Raises InputError for an unsupported chat."""


@dataclass(frozen=True, slots=True)
class Framed:
    """A chat in a template: the whole string, the places of the contents in it, and the parts that they form."""

    text: str
    regions: tuple[tuple[int, int], ...]
    parts: tuple[Unit, ...]


def chat_prompt(tokenizer: PreTrainedTokenizerBase, chat: Chat) -> TokenizedPrompt:
    """The chat in the tokenizer's own template, up to where the answer begins; see `framed`."""
    if tokenizer.chat_template is None:
        raise InputError("the tokenizer has no chat template: pass the prompt as a string.")
    frame = framed(chat, lambda other: _render(tokenizer, other))
    sealed = sealed_around(tokenizer, frame.text, frame.regions)
    ids, offsets = sealed_tokens(tokenizer, sealed)
    return TokenizedPrompt(frame.text, ids, offsets, frame.regions, parts=frame.parts, sealed=sealed)


def framed(chat: Chat, template: ChatTemplate) -> Framed:
    """The chat in a template.

    Only the contents of messages and documents are scored. Each message, each text of a content that is a list of
    them, and each document is a part, named by its role or title. Raises InputError.
    """
    _check(chat)
    slots = [*_of_messages(chat.messages), *_of_documents(chat.documents)]
    if not any(slot.content.strip() for slot in slots):
        raise InputError("the chat is empty or blank: there is nothing to explain.")
    text = template(chat)
    if chat.tools and template(replace(chat, tools=())) == text:
        raise InputError("the tokenizer's chat template leaves out the tools: put them into a message.")
    places = _places(text, slots, template(_with(chat, slots, [_mark(number) for number in range(len(slots))])))
    return Framed(text, tuple(sorted(places.values())), _parts(text, slots, places))


def _mark(number: int) -> str:
    return f"raison{number}content"


def _check(chat: Chat) -> None:
    if not chat.messages:
        raise InputError("the chat has no messages: give at least one.")
    for message in chat.messages:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise InputError(f"{message!r:.80} is not a chat message: {_SHAPE}.")
        content = message.get("content")
        parts = content if isinstance(content, list) else []
        known = isinstance(content, str) or (content is None and message.get("tool_calls"))
        if not known and not (parts and all(isinstance(p, Mapping) and isinstance(p.get("text"), str) for p in parts)):
            raise InputError(f"{message!r:.80} is not a chat message of text: {_SHAPE}{_CONTENT}.")
    for document in chat.documents:
        if not isinstance(document, Mapping) or not all(isinstance(value, str) for value in document.values()):
            raise InputError(f"{document!r:.80} is not a document: give dicts of strings, such as 'title' and 'text'.")


def _of_messages(messages: Sequence[Mapping[str, Any]]) -> list[_Slot]:
    slots: list[_Slot] = []
    for number, message in enumerate(messages):
        content = message.get("content")
        name = f"{message['role']} {message['name']}" if isinstance(message.get("name"), str) else str(message["role"])
        if isinstance(content, str):
            slots.append(_Slot((number, "content"), content, len(slots), name))
        else:
            for place, part in enumerate(content or ()):
                slots.append(_Slot((number, "content", place, "text"), part["text"], len(slots), name))
    return slots


def _of_documents(documents: Sequence[Mapping[str, str]]) -> list[_Slot]:
    return [
        _Slot((number, key), value, -1 - number, document.get("title", "").strip() or f"document {number + 1}")
        for number, document in enumerate(documents)
        for key, value in document.items()
    ]


def _with(chat: Chat, slots: Sequence[_Slot], contents: Sequence[str]) -> Chat:
    """The chat with other contents."""
    messages = [_copied(message) for message in chat.messages]
    documents = [dict(document) for document in chat.documents]
    for slot, content in zip(slots, contents, strict=True):
        place: Any = documents if slot.part < 0 else messages
        for step in slot.path[:-1]:
            place = place[step]
        place[slot.path[-1]] = content
    return replace(chat, messages=tuple(messages), documents=tuple(documents))


def _render(tokenizer: PreTrainedTokenizerBase, chat: Chat) -> str:
    try:
        return str(
            tokenizer.apply_chat_template(
                [_copied(message) for message in chat.messages],
                tools=list(chat.tools) or None,
                documents=[dict(document) for document in chat.documents] or None,
                tokenize=False,
                add_generation_prompt=True,
            )
        )
    except (TemplateError, ValueError, TypeError) as error:
        raise InputError(
            f"the tokenizer's chat template rejects the chat ({error}): change the messages (some templates take '' as "
            "content, and not None), or pass the rendered prompt as a string."
        ) from None


def _copied(message: Mapping[str, Any]) -> dict[str, Any]:
    content = message.get("content")
    return {**message, "content": [dict(part) for part in content]} if isinstance(content, list) else dict(message)


def _places(text: str, slots: Sequence[_Slot], marked: str) -> dict[int, tuple[int, int]]:
    """Where each slot's content is in the text, found where its mark is in the same template with marks."""
    where = {number: marked.find(_mark(number)) for number in range(len(slots))}
    for number, place in where.items():
        if place < 0 and slots[number].part < 0:
            raise InputError(
                f"the tokenizer's chat template leaves out {slots[number].path[-1]!r:.40} of the documents: put "
                "them into a message."
            )
    ordered = sorted(where, key=lambda number: where[number])
    rest, own = marked, []
    for number in ordered:
        before, mark, rest = rest.partition(_mark(number))
        if not mark:
            raise InputError(_REWRITTEN)
        own.append(before)
    cursor = len(own[0])
    if not text.startswith(own[0]):
        raise InputError(_REWRITTEN)
    places = {}
    for number, after in zip(ordered, [*own[1:], rest], strict=True):
        content = slots[number].content
        # Most templates strip the white space around a message.
        sent = next((one for one in (content, content.strip()) if text.startswith(one + after, cursor)), None)
        if sent is None:
            raise InputError(_REWRITTEN)
        places[number] = (cursor, cursor + len(sent))
        cursor += len(sent) + len(after)
    if cursor != len(text):
        raise InputError(_REWRITTEN)
    return places


def _parts(text: str, slots: Sequence[_Slot], places: Mapping[int, tuple[int, int]]) -> tuple[Unit, ...]:
    """Each part from the beginning of its first slot to the end of its last one, in the order of the text."""
    spans: dict[int, tuple[int, int]] = {}
    names: dict[int, str] = {}
    for number, slot in enumerate(slots):
        start, end = trim(text, *places[number])
        if start < end:
            first, last = spans.get(slot.part, (start, end))
            spans[slot.part] = (min(first, start), max(last, end))
            names[slot.part] = slot.name
    ordered = sorted(spans, key=lambda part: spans[part])
    return tuple(Unit(*spans[part], text[slice(*spans[part])], 0, names[part]) for part in ordered)


def rendered_prompt(
    tokenizer: PreTrainedTokenizerBase, text: str, untrusted: Sequence[CharacterSpan] = ()
) -> TokenizedPrompt:
    """A chat that was rendered before. Special tokens' names in its messages can no longer be distinguished from the
    template's own, except in its `untrusted` characters."""
    sealed = sealed_around(tokenizer, text, sorted(untrusted))
    ids, offsets = sealed_tokens(tokenizer, sealed)
    return TokenizedPrompt(text, ids, offsets, ((0, len(text)),), sealed=sealed)
