"""Sufficiency by the divergence of whole predictions."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from raison.numerics.losses.interpretability import SHARES, divergence_sufficiency_loss
from raison.training.self_explaining.criterion import Criterion, Shares, TrainingStep
from raison.training.self_explaining.sufficient import sufficiency_score, top_alone


@dataclass(frozen=True)
class DivergenceSufficiency(Criterion):
    """KL(M(t) || M(x)) over all classes (Xie et al. 2024, equation 17), averaged.

    t, the shares and `detached` are as in Comprehensiveness, the score as in Sufficiency. Reference: xie2024ivra.
    """

    shares: Shares = SHARES
    detached: bool = False

    def loss(self, step: TrainingStep) -> Float[Tensor, ""]:
        kept = [top_alone(step, share, self.detached) for share in step.portions(self.shares)]
        return torch.stack([divergence_sufficiency_loss(step.decisions, one) for one in kept]).mean()

    def score(self, step: TrainingStep) -> list[float]:
        return sufficiency_score(step, self.shares)
