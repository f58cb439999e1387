"""Comprehensiveness: without its highest-scored tokens, the model should no longer give the same prediction."""

from dataclasses import dataclass
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.settings.fields import Setting
from raison.numerics.losses.interpretability import (
    SHARES,
    comprehensiveness_loss,
    cross_entropy,
    probability,
    straight_through,
    top_tokens,
)
from raison.training.self_explaining.criterion import Criterion, Shares, TrainingStep


@dataclass(frozen=True)
class Comprehensiveness(Criterion):
    """mu + max(-mu, CE(x) - CE(x without t)) of the predicted class (Xie et al. 2024, equation 10), averaged.

    t are the top k of the explanation. k is drawn from `shares`, one for each text and step: in expectation this is the
    mean over all, at one further pass instead of five. A removed token's embedding becomes that of the model's removal
    (the mask token). The paper does not say how its gradient passes the choice of t. Here it is a straight-through
    estimate: the hard choice in the forward pass, the explanation's own gradient in the backward pass. With `detached`,
    as in the code that the paper builds on (UNIREX), no gradient reaches the explainer's coefficients, and it reaches
    the model's weights only through the two passes.

    Score: p(x) - p(x without t), averaged over all shares. Reference: xie2024ivra.
    """

    margin: Annotated[float, Setting(least=0)] = 1.0
    shares: Shares = SHARES
    detached: bool = False

    def loss(self, step: TrainingStep) -> Float[Tensor, ""]:
        whole = cross_entropy(step.decisions, step.predicted)
        portions = step.portions(self.shares)
        losses = [comprehensiveness_loss(whole, self._without(step, share), self.margin) for share in portions]
        return torch.stack(losses).mean()

    def score(self, step: TrainingStep) -> list[float]:
        whole = probability(step.decisions, step.predicted)
        drops = [whole - probability(self._rest(step, share), step.predicted) for share in step.portions(self.shares)]
        return torch.stack(drops).mean(0).tolist()

    def _without(self, step: TrainingStep, share: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
        return cross_entropy(self._rest(step, share), step.predicted)

    def _rest(self, step: TrainingStep, share: Float[Tensor, " batch"]) -> Float[Tensor, "batch parts choices"]:
        top = top_tokens(step.shares, step.scored, share)
        return step.kept(1 - (top.to(step.shares) if self.detached else straight_through(top, step.shares)))
