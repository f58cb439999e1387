"""Consistency as clustering: texts of one class should have similar explanations."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from raison.core.errors import InputError
from raison.numerics.losses.interpretability import clustering_loss
from raison.training.self_explaining.consistent import FEWEST, FEWEST_SCORED, consistency_score
from raison.training.self_explaining.criterion import Criterion, TrainingStep


@dataclass(frozen=True)
class Clustering(Criterion):
    """The mean of ||r_i - r_j||^2 within the classes of a batch minus that between them (Xie et al. 2024, equation 20).

    The paper prints a plus, "min" and "max" in front of the norms, and says that the second distances are maximised.
    Answers to questions have no classes. Score: as Consistency. Reference: xie2024ivra.
    """

    @property
    def reads_states(self) -> bool:
        return True

    @property
    def fewest(self) -> int:
        return FEWEST

    @property
    def fewest_scored(self) -> int:
        return FEWEST_SCORED

    def loss(self, step: TrainingStep) -> Float[Tensor, ""]:
        if step.labels.shape[1] != 1:
            raise InputError("clustering needs classes, which question answering lacks: use the criterion cons.")
        return clustering_loss(step.shares, step.labels[:, 0])

    def score(self, step: TrainingStep) -> list[float]:
        return consistency_score(step)
