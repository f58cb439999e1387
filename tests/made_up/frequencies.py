"""A made-up capability: all that a new one takes, beside what offers it and what asks for it."""

from abc import abstractmethod
from typing import ClassVar

from jaxtyping import Int
from torch import Tensor

from raison.core.capability import Capability
from raison.core.inputs.encoding import Encoding


class Frequencies(Capability):
    """Says how often each token was read in training."""

    name: ClassVar[str] = "frequencies"
    absence: ClassVar[str] = "does not say what it read in training"
    way_out: ClassVar[str] = "Use occlusion."

    @abstractmethod
    def counts(self, encoding: Encoding) -> Int[Tensor, "batch tokens"]:
        """How often, at least 1."""
