"""The task's loss plus criteria of explanations."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor, nn

from raison.numerics.losses.interpretability import cross_entropy
from raison.training.loop.objective import Objective, TrainingBatch
from raison.training.self_explaining.criterion import Criterion


@dataclass(frozen=True)
class TaskAndCriteria(Objective):
    """Cross-entropy of the labels + sum of weight x criterion; the task alone if there is no criterion.

    A criterion that compares texts is skipped for a batch that is too small for it (the last one of an epoch).
    """

    criteria: tuple[tuple[Criterion, float], ...] = ()

    @property
    def by_row(self) -> bool:
        """False with criteria: they compare texts, and a student learns from the whole batch."""
        return not self.criteria

    def loss(self, module: nn.Module, batch: TrainingBatch) -> Float[Tensor, ""]:
        step = module.step(batch.inputs["rows"].tolist())  # type: ignore[operator]
        total = cross_entropy(step.decisions, step.labels).mean()
        for criterion, weight in self.criteria:
            if len(step.encoding) >= criterion.fewest:
                total = total + weight * criterion.loss(step)
        return total
