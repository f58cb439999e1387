"""Predictions at positions of a text: which position is explained, and which of the model's outputs there."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from raison.core.inputs.encoding import Encoding
from raison.core.targets.choices import TargetSpec
from raison.core.targets.place import Place

PlaceTarget = tuple[int, int, str | int]
"""A place by its characters and the tag or token that is explained there, as a call's target may name it."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The explained output of each text of an encoding, whose `spans` and `reading` say where it is read."""

    encoding: Encoding
    index: list[int]
    """The explained class."""
    against: list[int] | None
    """The class that it is contrasted with, if any."""
    places: tuple[Place, ...]
    classes: tuple[tuple[str, ...], ...]
    """The classes' names."""
    runner_up: int | None = None
    """The class that a margin is taken against if `against` is None; None: the strongest other class."""


class Choosing(ABC):
    """Finds and chooses the predictions of a model that predicts at positions of a text."""

    targets: ClassVar[tuple[str, ...]]
    """What a target may name, in words."""
    sought: ClassVar[str] = ""
    """The name of predictions that a text may be without, such as "entity"; empty if every text has one."""

    @abstractmethod
    def read(self, encoding: Encoding) -> Encoding:
        """The encoding with one position per text, so that it has logits whatever the target."""

    @abstractmethod
    def settled(self, encoding: Encoding, spec: TargetSpec) -> Settled:
        """The prediction that a target names in each text; None is the model's most probable one. Raises InputError."""

    @abstractmethod
    def each(self, encoding: Encoding, threshold: float) -> list[list[PlaceTarget]]:
        """What the model predicts in each text with at least this probability, in the text's order."""
