"""A metric: how good is one explanation? Averaging is evaluate.py's job."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float

from raison.core.explanation import Explanation

KeepRows = Bool[np.ndarray, "masks units"]


IN_PLACE = "in_place"
"""A removal that keeps the length: the mask token, else the unknown token, else padding."""


@runtime_checkable
class Evidence(Protocol):
    """What a metric may ask of the model about one text."""

    def probabilities(self, keeps: KeepRows, removal: str) -> Float[np.ndarray, " masks"]:
        """Probability of the explained class under each keep.

        `removal` is one of the model's, or IN_PLACE. Whatever `Metric.keeps` announced has been computed in one go
        with all other texts and metrics; anything else is computed on the spot.
        """


@dataclass(frozen=True)
class Metric(ABC):
    """A number per explanation. Its name is its file's name."""

    reference: ClassVar[str]
    higher_is_better: ClassVar[bool]
    ordered: ClassVar[bool] = True
    """Depends on nothing but the order of the scores, so that a better order gives a better value."""

    def keeps(self, explanation: Explanation) -> dict[str, KeepRows]:
        """The keeps that `measure` will ask for, by removal, so that all can be computed together."""
        return {}

    @abstractmethod
    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        """The metric's value on one text."""
