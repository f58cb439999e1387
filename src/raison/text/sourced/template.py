"""A prompt with a question and its sources, and the place of each source in it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from raison.core.errors import DataError, InputError, UnknownNameError
from raison.core.settings.reading import toml_value
from raison.text.segment import CharacterSpan

_SLOTS = re.compile(r"(\{sources\}|\{question\})")
_OF_SOURCE = re.compile(r"(\{text\}|\{id\}|\{number\})")


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """A source in a prompt: characters `start` to `end`, of which `first` to `last` are its text, the rest its label.

    The label is removed together with the source.
    """

    id: str
    start: int
    first: int
    last: int
    end: int

    def within(self, start: int, end: int) -> "SourcePlace":
        """The same source without its characters outside of `start` to `end`."""
        edges = (min(max(one, start), end) for one in (self.start, self.first, self.last, self.end))
        return SourcePlace(self.id, *edges)

    def shifted(self, by: int) -> "SourcePlace":
        """The same source, `by` characters further on."""
        return SourcePlace(self.id, self.start + by, self.first + by, self.last + by, self.end + by)


@dataclass(frozen=True, slots=True)
class Filled:
    """A template with its question and its sources."""

    text: str
    places: tuple[SourcePlace, ...]
    given: tuple[CharacterSpan, ...]
    """The characters that are the caller's and not the template's: the question, the sources and their ids."""


@dataclass(frozen=True, slots=True)
class SourceTemplate:
    """How a question and its sources are presented to a language model. All other braces are text.

    - `prompt` has the slots {sources} and {question}, once each.
    - `source` is the format of one source: {text}, and {id} or {number} (from 1) for a label. Sources keep the caller's
      order, with `separator` between them.
    - `before` is put before a given answer that does not begin with white space; `stop` ends the model's own answer.
    - `chat` sends the prompt as one message of the user, in the tokenizer's own chat template.

    Raises InputError for a slot that is missing or repeated.
    """

    name: str
    prompt: str
    source: str = "{text}"
    separator: str = "\n\n"
    before: str = ""
    stop: str = ""
    chat: bool = False

    def __post_init__(self) -> None:
        for field, slots in (("prompt", ("{sources}", "{question}")), ("source", ("{text}",))):
            for slot in slots:
                count = getattr(self, field).count(slot)
                if count != 1:
                    raise InputError(
                        f"the template '{self.name}' has {slot} {count} times in its {field}: write it once."
                    )

    @classmethod
    def read(cls, path: Path) -> "SourceTemplate":
        """A template from a TOML file whose keys are the fields. Raises DataError, UnknownNameError or InputError."""
        try:
            table = toml_value(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise DataError(f"{path} is not TOML: {error}.") from None
        except OSError as error:
            raise DataError(f"cannot read {path}: {error.strerror or error}.") from None
        known = {field.name: bool if field.name == "chat" else str for field in fields(cls)}
        for key, value in table.items():
            if key not in known:
                raise UnknownNameError("key of a template", key, known)
            if type(value) is not known[key]:
                raise DataError(f"{path}: {key} is {value!r:.40}; it must be a {known[key].__name__}.")
        if "prompt" not in table:
            raise DataError(f"{path} has no prompt: write it with {{sources}} and {{question}}.")
        return cls(**{"name": path.stem} | table)

    def fill(self, sources: Mapping[str, str], question: str) -> Filled:
        """The prompt for these sources, in this order, and their places in it."""
        text, places, given = "", list[SourcePlace](), list[CharacterSpan]()
        for piece in _SLOTS.split(self.prompt):
            if piece == "{question}":
                given.append((len(text), len(text) + len(question)))
                text += question
            elif piece == "{sources}":
                for number, (name, source) in enumerate(sources.items(), 1):
                    text += self.separator if number > 1 else ""
                    start = len(text)
                    for part in _OF_SOURCE.split(self.source):
                        if part == "{text}":
                            first = len(text)
                        own = {"{text}": source, "{id}": name}.get(part)
                        if own is not None:
                            given.append((len(text), len(text) + len(own)))
                        text += str(number) if part == "{number}" else part if own is None else own
                        if part == "{text}":
                            last = len(text)
                    places.append(SourcePlace(name, start, first, last, len(text)))
            else:
                text += piece
        return Filled(text, tuple(places), tuple(given))
