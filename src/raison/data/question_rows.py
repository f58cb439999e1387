"""A question with its sources, and the gold sources of its answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Gold:
    """A gold source of an answer: a source, or characters `start` to `end` of its text."""

    source: str
    start: int = 0
    end: int | None = None


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """A row of a file: a question, or the messages of a conversation; its sources by id; its answer, if recorded.

    `sources` None are those in the conversation. `gold` are the sources that the answer is known to rest on, if the row
    gives them.
    """

    number: int
    question: str | tuple[Mapping[str, Any], ...]
    sources: dict[str, str] | None
    answer: str | None = None
    gold: tuple[Gold, ...] = ()

    @property
    def title(self) -> str:
        """The question, or the last message of the conversation that is text."""
        if isinstance(self.question, str):
            return self.question
        texts = [message["content"] for message in self.question if isinstance(message.get("content"), str)]
        return texts[-1] if texts else ""
