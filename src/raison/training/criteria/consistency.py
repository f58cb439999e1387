"""Consistency: texts that the model sees as similar should have similar explanations."""

from dataclasses import dataclass
from typing import Annotated

from jaxtyping import Float
from torch import Tensor

from raison.core.settings.fields import Setting
from raison.numerics.losses.interpretability import consistency_loss
from raison.training.self_explaining.consistent import FEWEST, FEWEST_SCORED, consistency_score
from raison.training.self_explaining.criterion import Criterion, TrainingStep


@dataclass(frozen=True)
class Consistency(Criterion):
    """KL(r_i || r_j) / (||H_i - H_j|| + floor), over all pairs of the batch (Xie et al. 2024, equations 13 and 19).

    H are the layers' hidden states, averaged over the layers and compared position by position, with the L2 norm over
    all of them. r and H of different lengths are padded on the right. `smoothing` mixes r with the uniform
    distribution; without it, padding and sparsemax's zeros make the divergence infinite. `floor` is the paper's
    epsilon_0. The paper leaves all of these open, and also the direction of the divergence; here both directions count.

    If a model has a norm after its last layer, H is taken before it here, and after it in the metric.

    As printed, the loss also falls when hidden states move apart: `fixed_states` passes no gradient to them.

    Score: Spearman's rho between both distances (equation 12), as the metric consistency. Reference: xie2024ivra.
    """

    smoothing: Annotated[float, Setting(above=0, below=1)] = 0.01
    floor: Annotated[float, Setting(above=0)] = 1e-6
    fixed_states: bool = False

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
        states = step.states.detach() if self.fixed_states else step.states
        return consistency_loss(step.shares, states, self.smoothing, self.floor)

    def score(self, step: TrainingStep) -> list[float]:
        return consistency_score(step)
