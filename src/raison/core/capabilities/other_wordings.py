"""Texts that are edited by the model which was prepared for them."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from raison.core.capability import Capability
from raison.core.inputs.unit import Text
from raison.core.model import LanguageModel


@dataclass(frozen=True, slots=True)
class Worded:
    """A model that reads the edited texts, and these texts; None where an edit has no place."""

    model: LanguageModel
    texts: tuple[Text | None, ...]


class OtherWordings(Capability):
    """Edits the texts that it was prepared for: answers after prompts whose sources are worded or ordered otherwise."""

    name: ClassVar[str] = "other_wordings"
    absence: ClassVar[str] = "reads any text, and needs no help with another wording"

    @abstractmethod
    def worded(self, edits: Sequence[tuple[Text, str]]) -> Worded:
        """Texts after an edit each, given by its name (raison.text.edits). Answers and their statements stay."""
