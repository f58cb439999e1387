"""Shared by the three sufficiency losses: the model's decisions for the highest-scored tokens alone."""

import torch
from jaxtyping import Float
from torch import Tensor

from raison.numerics.losses.interpretability import probability, straight_through, top_tokens
from raison.training.self_explaining.criterion import TrainingStep


def top_alone(
    step: TrainingStep, share: Float[Tensor, " batch"], detached: bool
) -> Float[Tensor, "batch parts choices"]:
    """Decisions with every token outside the explanation's top share removed; see Comprehensiveness for `detached`."""
    top = top_tokens(step.shares, step.scored, share)
    return step.kept(top.to(step.shares) if detached else straight_through(top, step.shares))


def sufficiency_score(step: TrainingStep, shares: tuple[float, ...]) -> list[float]:
    """p(t) - p(x) of each text, averaged over all shares: the paper's sufficiency (equation 9) with the opposite
    sign."""
    whole = probability(step.decisions, step.predicted)
    gains = [probability(top_alone(step, share, True), step.predicted) - whole for share in step.portions(shares)]
    return torch.stack(gains).mean(0).tolist()
