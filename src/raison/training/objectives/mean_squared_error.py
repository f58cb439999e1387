"""The loss of a regression on the scores of units."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from raison.training.loop.objective import Objective, TrainingBatch


@dataclass(frozen=True)
class MeanSquaredError(Objective):
    """Mean over the batch of the mean of (s - t)^2 over the known targets t of a text, with scores s.

    The module is called with the batch's rows and returns scores and targets, one table per text; a target is NaN if
    there is nothing to learn.
    """

    @property
    def by_row(self) -> bool:
        return True

    def loss(self, module: nn.Module, batch: TrainingBatch) -> Float[Tensor, ""]:
        """The loss in the square of the targets' unit."""
        scores, targets = module(batch.inputs["rows"])
        known = ~targets.isnan()
        squares = torch.where(known, scores - targets.nan_to_num(), 0).square()
        return (squares.flatten(1).sum(1) / known.flatten(1).sum(1)).mean()
