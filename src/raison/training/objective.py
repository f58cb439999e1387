"""What a loss is: the trainer's only view of what is being learned."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class Batch:
    """What one step sees: the module's inputs by name, and one class number per row."""

    inputs: dict[str, Tensor]
    labels: Tensor


@dataclass(frozen=True)
class Objective(ABC):
    """A loss: a frozen record of its settings and one function. Its name is its file's name."""

    @abstractmethod
    def loss(self, module: nn.Module, batch: Batch) -> Float[Tensor, ""]:
        """The number to make small, differentiable in the module's trainable parameters."""
