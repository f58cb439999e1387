"""Edited texts for models that were prepared for certain texts."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from raison.core.capability import Capability
from raison.core.inputs.unit import Text
from raison.core.model import LanguageModel


@dataclass(frozen=True, slots=True)
class Worded:
    """A model that reads the edited texts, and these texts; None if an edit does not apply."""

    model: LanguageModel
    texts: tuple[Text | None, ...]


class OtherWordings(Capability):
    """Edits the texts that it was prepared for: answers after prompts whose sources are reworded or reordered."""

    name: ClassVar[str] = "other_wordings"
    absence: ClassVar[str] = "accepts any text, so other wordings need no preparation"

    @abstractmethod
    def worded(self, edits: Sequence[tuple[Text, str]]) -> Worded:
        """Texts after one edit each, given by its name (raison.text.edits). Answers and their statements stay."""
