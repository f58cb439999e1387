"""How long what is explained is."""

from abc import abstractmethod
from typing import ClassVar

from raison.core.capability import Capability
from raison.core.inputs.encoding import Encoding


class AnswerLengths(Capability):
    """Says how many tokens the explained answer to each text has: statements that a language model wrote."""

    name: ClassVar[str] = "answer_lengths"
    absence: ClassVar[str] = "predicts classes, and no answer of several tokens"

    @abstractmethod
    def answer_lengths(self, encoding: Encoding) -> tuple[int, ...]:
        """The number of tokens of each text's answer."""
