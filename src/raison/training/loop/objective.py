"""A loss: the trainer's only view of the learning task."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class TrainingBatch:
    """The data of one step: the module's inputs by name, and one class number per row."""

    inputs: dict[str, Tensor]
    labels: Tensor

    def select(self, rows: Sequence[int]) -> "TrainingBatch":
        """Some of the rows."""
        chosen = torch.tensor(list(rows))
        return TrainingBatch({name: column[chosen] for name, column in self.inputs.items()}, self.labels[chosen])


@dataclass(frozen=True)
class Objective(ABC):
    """A loss: a frozen record of its settings and one function. Its name is its file's name."""

    @property
    def by_row(self) -> bool:
        """Whether the loss is a mean of independent numbers, one per row, so that parts of a batch add up."""
        return False

    @abstractmethod
    def loss(self, module: nn.Module, batch: TrainingBatch) -> Float[Tensor, ""]:
        """The number to minimise, differentiable in the module's trainable parameters."""
