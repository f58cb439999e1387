"""Sufficiency by the absolute difference of cross-entropies."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from raison.numerics.losses.interpretability import SHARES, absolute_sufficiency_loss, cross_entropy
from raison.training.self_explaining.criterion import Criterion, Shares, TrainingStep
from raison.training.self_explaining.sufficient import sufficiency_score, top_alone


@dataclass(frozen=True)
class AbsoluteSufficiency(Criterion):
    """|CE(t) - CE(x)| of the predicted class (Xie et al. 2024, equation 16), averaged.

    It assumes that the model is never more certain of its class with a part of the text than with all of it. t, the
    shares and `detached` are as in Comprehensiveness, the score as in Sufficiency. Reference: xie2024ivra.
    """

    shares: Shares = SHARES
    detached: bool = False

    def loss(self, step: TrainingStep) -> Float[Tensor, ""]:
        whole = cross_entropy(step.decisions, step.predicted)
        kept = [top_alone(step, share, self.detached) for share in step.portions(self.shares)]
        return torch.stack(
            [absolute_sufficiency_loss(whole, cross_entropy(one, step.predicted)) for one in kept]
        ).mean()

    def score(self, step: TrainingStep) -> list[float]:
        return sufficiency_score(step, self.shares)
