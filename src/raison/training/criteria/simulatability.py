"""Simulatability: a student that is shown the explanations should learn the model's predictions."""

from dataclasses import dataclass
from typing import Annotated

from jaxtyping import Float
from torch import Tensor

from raison.core.settings.fields import Setting
from raison.training.self_explaining.criterion import Criterion, TrainingStep


@dataclass(frozen=True)
class Simulatability(Criterion):
    """CE(student, model's prediction) + weight x KL(r || r of the student) (Xie et al. 2024, equation 7).

    The paper prints the cross-entropy without its minus. There are two levels: the student takes one step of gradient
    descent on this loss (equation 14), and the model takes one on the same loss of the updated student, through that
    step (equation 15). Both see the same texts, from the student's share of the data. The gradient through the step is
    exact: it is the gradient of one number computed from the student's own gradient, at the cost of a backward pass
    through that gradient.

    The weight of the divergence is the paper's 1. `smoothing` mixes both explanations with the uniform distribution; 0,
    as the paper prints it, is for softmax.

    Score: 1 for each text on which the current student agrees with the model's prediction. Reference: xie2024ivra;
    fernandes2022learning.
    """

    weight: Annotated[float, Setting(least=0)] = 1.0
    smoothing: Annotated[float, Setting(least=0, below=1)] = 0.01

    @property
    def takes_logarithms(self) -> bool:
        return self.smoothing == 0

    @property
    def trains_student(self) -> bool:
        return True

    def loss(self, step: TrainingStep) -> Float[Tensor, ""]:
        return step.simulate(self.weight, self.smoothing).loss

    def score(self, step: TrainingStep) -> list[float]:
        return step.simulate(self.weight, self.smoothing).agreed.double().tolist()
