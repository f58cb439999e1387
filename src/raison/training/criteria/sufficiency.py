"""Sufficiency: with only its highest-scored tokens, the model should give the same prediction."""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.settings.fields import Setting
from raison.numerics.losses.interpretability import SHARES, cross_entropy, sufficiency_loss
from raison.training.self_explaining.criterion import Criterion, Shares, TrainingStep
from raison.training.self_explaining.sufficient import sufficiency_score, top_alone


@dataclass(frozen=True)
class Sufficiency(Criterion):
    """mu + max(-mu, CE(t) - CE(x)) of the predicted class (Xie et al. 2024, equation 11), averaged.

    t, the shares and `detached` are as in Comprehensiveness. Score: p(t) - p(x), averaged over all shares.
    Reference: xie2024ivra.
    """

    margin: Annotated[float, Setting(least=0)] = 0.1
    shares: Shares = SHARES
    detached: bool = False

    def loss(self, step: TrainingStep) -> Float[Tensor, ""]:
        whole = cross_entropy(step.decisions, step.predicted)
        kept = [top_alone(step, share, self.detached) for share in step.portions(self.shares)]
        losses = [sufficiency_loss(whole, cross_entropy(one, step.predicted), self.margin) for one in kept]
        return torch.stack(losses).mean()

    def score(self, step: TrainingStep) -> list[float]:
        return sufficiency_score(step, self.shares)
