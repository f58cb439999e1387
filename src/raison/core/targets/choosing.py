"""Predictions at places of a text: which place is explained, and which of the model's outputs there."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from raison.core.inputs.encoding import Encoding
from raison.core.targets.choices import TargetSpec
from raison.core.targets.place import Place

PlaceTarget = tuple[int, int, str | int]
"""A place by its characters, and the tag or the token that is explained there; a target that a call may name."""


@dataclass(frozen=True, slots=True)
class Settled:
    """What is explained of each text of an encoding, whose `spans` and `reading` say where it is read."""

    encoding: Encoding
    index: list[int]
    """The explained class."""
    against: list[int] | None
    """The class that it is contrasted with; None where none is named."""
    places: tuple[Place, ...]
    classes: tuple[tuple[str, ...], ...]
    """The classes' names."""


class Choosing(ABC):
    """What a model that predicts at places of a text finds there."""

    targets: ClassVar[tuple[str, ...]]
    """What a target may name, in words."""

    @abstractmethod
    def read(self, encoding: Encoding) -> Encoding:
        """The encoding with a place of each text, so that it has logits, whatever a caller may ask for."""

    @abstractmethod
    def settled(self, encoding: Encoding, spec: TargetSpec) -> Settled:
        """What a target names in each text; None is the model's own surest prediction. Raises InputError."""

    @abstractmethod
    def each(self, encoding: Encoding, threshold: float) -> list[list[PlaceTarget]]:
        """What the model predicts in each text with at least this probability, in the text's order."""
