"""Weights of attention heads, learned from the effects of random ablations of sources on a statement."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

CLIP = 1.0
_TINY = 1e-8
"""Added to the divisor of a correlation, so that constant values give 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Ablated:
    """A statement: its attention to each source, and its log-odds under removals of sources."""

    attention: Float[Tensor, "sources layers heads"]
    keeps: Bool[Tensor, "masks sources"]
    log_odds: Float[Tensor, " masks"]

    @property
    def features(self) -> Float[Tensor, "masks entries"]:
        """Each head's attention to the sources that are kept minus that to those that are removed."""
        return (2 * self.keeps.double() - 1) @ self.attention.double().flatten(1)


def correlations(weights: Float[Tensor, "layers heads"], statements: Sequence[Ablated]) -> Float[Tensor, " batch"]:
    """Pearson's correlation of the log-odds of each statement's ablations with the sums of weighted attention."""
    features, values = _stacked(statements)
    return _pearson(features @ weights.flatten(), values)


def learned_weights(statements: Sequence[Ablated], steps: int, learning_rate: float) -> Float[Tensor, "layers heads"]:
    """The weights that maximise the mean correlation, starting from equal ones; their absolute values sum to 1.

    Adam with gradients of a norm of `CLIP` at most, all statements in each step, and a rate that falls to zero along a
    cosine.
    """
    features, values = _stacked(statements)
    shape = statements[0].attention.shape[1:]
    weights = torch.full((shape.numel(),), 1 / shape.numel(), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([weights], lr=learning_rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=steps)
    with torch.enable_grad():
        for _ in range(steps):
            optimizer.zero_grad()
            _pearson(features @ weights, values).mean().neg().backward()
            torch.nn.utils.clip_grad_norm_([weights], CLIP)
            optimizer.step()
            schedule.step()
    reached = weights.detach()
    return (reached / reached.abs().sum()).reshape(shape)


def _stacked(
    statements: Sequence[Ablated],
) -> tuple[Float[Tensor, "batch masks entries"], Float[Tensor, "batch masks"]]:
    """The features and log-odds of all statements, which have equally many ablations."""
    return torch.stack([one.features for one in statements]), torch.stack([one.log_odds.double() for one in statements])


def _pearson(predicted: Float[Tensor, "batch masks"], values: Float[Tensor, "batch masks"]) -> Float[Tensor, " batch"]:
    left, right = (one - one.mean(1, keepdim=True) for one in (predicted, values))
    # A norm of this form also has a gradient if all values are the same.
    norms = torch.linalg.vector_norm(left, dim=1) * torch.linalg.vector_norm(right, dim=1)
    return (left * right).sum(1) / (norms + _TINY)
