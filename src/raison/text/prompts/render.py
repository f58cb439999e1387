"""From a prompt's messages to the strings around the input."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from raison.core.errors import InputError
from raison.text.segment import CharacterSpan

Template = Callable[[list[dict[str, str]]], str]
"""A tokenizer's chat template: messages with "role" and "content" to the string up to where the answer begins."""

MessageCharacter = tuple[int, int]
"""A message's number and a character of its text."""

_WAY_OUT = "take a prompt without `chat` (plain text), or one whose messages this template leaves unchanged"


@dataclass(frozen=True, slots=True)
class Rendered:
    """The prompt as the model reads it: `before`, the input, `after` (the answer cue).

    `parts` are spans of `before` that can be units: each sentence of the system message and of the task, each shot
    as a whole.
    """

    before: str
    after: str
    parts: tuple[CharacterSpan, ...]

    def around(self, text: str) -> str:
        """The whole string with the input in its slot."""
        return self.before + text + self.after


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One message of a chat; a plain prompt is a single one."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class MessageLayout:
    """All messages, the place of the input (in the last one), and where each part starts and ends."""

    messages: tuple[PromptMessage, ...]
    slot: int
    parts: tuple[tuple[MessageCharacter, MessageCharacter], ...]


def render_plain(layout: MessageLayout) -> Rendered:
    """The single message's own text."""
    (message,) = layout.messages
    spans = tuple((start, end) for (_, start), (_, end) in layout.parts)
    return Rendered(message.text[: layout.slot], message.text[layout.slot :], spans)


def render_chat(layout: MessageLayout, template: Template) -> Rendered:
    """The messages in their template. Raises InputError for a template that changes the texts."""
    marks = [_mark(number) for number in range(len(layout.messages) + 1)]
    frame = template([_sent(message.role, mark) for message, mark in zip(layout.messages, marks, strict=False)])
    gaps = _gaps(frame, marks[:-1], layout.messages)
    string, starts = gaps[0], []
    for message, gap in zip(layout.messages, gaps[1:], strict=True):
        starts.append(len(string))
        string += message.text + gap
    slot = starts[-1] + layout.slot
    _check_contents(layout, marks[-1], template, string[:slot] + marks[-1] + string[slot:])
    spans = tuple((starts[first] + start, starts[last] + end) for (first, start), (last, end) in layout.parts)
    return Rendered(string[:slot], string[slot:], spans)


def _mark(number: int) -> str:
    # Characters that a template could escape, strip or fold, to detect whether it does.
    return f"Mark\"<&'{{{number}}}\\>\nEnd"


def _sent(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _gaps(frame: str, marks: Sequence[str], messages: Sequence[PromptMessage]) -> list[str]:
    """The template's own text before, between and after the messages."""
    gaps, rest = [], frame
    for mark, message in zip(marks, messages, strict=True):
        count = frame.count(mark)
        if count != 1:
            fault = "repeats" if count else "leaves out, escapes or changes"
            raise InputError(f"the tokenizer's chat template {fault} the {message.role} message: {_WAY_OUT}.")
        gap, separator, rest = rest.partition(mark)
        if not separator:
            raise InputError(f"the tokenizer's chat template reorders messages: {_WAY_OUT}.")
        gaps.append(gap)
    return [*gaps, rest]


def _check_contents(layout: MessageLayout, mark: str, template: Template, expected: str) -> None:
    """The real messages must come out where the marks did, unchanged."""
    *earlier, last = layout.messages
    user_message = _sent(last.role, last.text[: layout.slot] + mark + last.text[layout.slot :])
    if template([*(_sent(message.role, message.text) for message in earlier), user_message]) != expected:
        raise InputError(
            "the tokenizer's chat template changes the text of the prompt's messages (it may trim white space at "
            f"their ends): remove that white space, or {_WAY_OUT}."
        )
