"""Simulatability: a student that is shown the explanations should learn to say what the model says."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from raison.training.criterion import Criterion, Step


@dataclass(frozen=True)
class Simulatability(Criterion):
    """CE(student, what the model says) + weight x KL(r || r of the student) (Xie et al. 2024, equation 7).

    The paper prints the cross-entropy without its minus. Two levels: the student takes one step of gradient descent on
    this loss (equation 14), and the model one on the same loss of the updated student, through that step (equation 15).
    Both see the same texts, of the share of the data that the student learns from. The gradient through the step is
    exact: what it needs of the second derivative is the gradient of one number, made of the student's own gradient, at
    the price of a pass back through that.

    The weight of the divergence is the paper's 1. `smoothing` mixes both explanations with the uniform distribution.

    Score: 1 for each text on which the student of that moment says what the model says. Reference: xie2024ivra;
    fernandes2022learning.
    """

    weight: float = 1.0
    smoothing: float = 0.01

    @property
    def trains_student(self) -> bool:
        return True

    def loss(self, step: Step) -> Float[Tensor, ""]:
        return step.simulate(self.weight, self.smoothing).loss

    def score(self, step: Step) -> list[float]:
        return step.simulate(self.weight, self.smoothing).agreed.double().tolist()
