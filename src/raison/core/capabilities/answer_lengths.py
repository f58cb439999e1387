"""The length of the explained output in tokens."""

from abc import abstractmethod
from typing import ClassVar

from raison.core.capability import Capability
from raison.core.inputs.encoding import Encoding


class AnswerLengths(Capability):
    """Gives the number of tokens of each text's explained answer: of statements that a language model wrote."""

    name: ClassVar[str] = "answer_lengths"
    absence: ClassVar[str] = "predicts classes, not answers of several tokens"

    @abstractmethod
    def answer_lengths(self, encoding: Encoding) -> tuple[int, ...]:
        """The number of tokens of each text's answer."""
