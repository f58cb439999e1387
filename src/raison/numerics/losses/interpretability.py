"""Losses that make explanations more faithful, more consistent and easier to learn from (Xie et al. 2024, IvRA).

Predictions are logits (batch, parts, choices): one part among the classes, or a span's start and end among the tokens.
Every loss is one number per text, unless it says otherwise.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

Decisions = Float[Tensor, "batch parts choices"]
Chosen = Int[Tensor, "batch parts"]

SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)
"""The shares of tokens that are removed or kept: k of the paper, in its section 2.2.2."""


def cross_entropy(decisions: Decisions, chosen: Chosen) -> Float[Tensor, " batch"]:
    """-log p of the chosen class; for a span the mean over its two ends. Choices with logit -inf are excluded."""
    return -decisions.log_softmax(-1).gather(-1, chosen[..., None])[..., 0].mean(-1)


def probability(decisions: Decisions, chosen: Chosen) -> Float[Tensor, " batch"]:
    """The probability of all chosen parts together: p of the class, or p of the start times p of the end."""
    return decisions.log_softmax(-1).gather(-1, chosen[..., None])[..., 0].sum(-1).exp()


def top_tokens(
    scores: Float[Tensor, "batch tokens"], scored: Bool[Tensor, "batch tokens"], shares: Float[Tensor, " batch"]
) -> Bool[Tensor, "batch tokens"]:
    """t of the paper: the highest-scored share of each text's own tokens, rounded (half to even, where metrics round
    half up), at least one; ties by position."""
    counts = (shares.to(scores) * scored.sum(1)).round().clamp_min(1)
    order = scores.detach().masked_fill(~scored, -torch.inf).argsort(dim=1, descending=True, stable=True)
    return (order.argsort(1) < counts[:, None]) & scored


def straight_through(
    chosen: Bool[Tensor, "batch tokens"], scores: Float[Tensor, "batch tokens"]
) -> Float[Tensor, "batch tokens"]:
    """The hard choice as numbers whose gradient is that of the scores; a hard top-k alone has no gradient."""
    return chosen.to(scores) + scores - scores.detach()


def comprehensiveness_loss(
    whole: Float[Tensor, " batch"], without: Float[Tensor, " batch"], margin: float
) -> Float[Tensor, " batch"]:
    """Equation 10, from cross-entropies of the predicted class: mu + max(-mu, CE(x) - CE(x without t)); at least 0."""
    return margin + (whole - without).clamp_min(-margin)


def sufficiency_loss(
    whole: Float[Tensor, " batch"], kept: Float[Tensor, " batch"], margin: float
) -> Float[Tensor, " batch"]:
    """Equation 11: mu + max(-mu, CE(t) - CE(x)); at least 0."""
    return margin + (kept - whole).clamp_min(-margin)


def absolute_sufficiency_loss(whole: Float[Tensor, " batch"], kept: Float[Tensor, " batch"]) -> Float[Tensor, " batch"]:
    """Equation 16: |CE(t) - CE(x)|."""
    return (kept - whole).abs()


def divergence_sufficiency_loss(whole: Decisions, kept: Decisions) -> Float[Tensor, " batch"]:
    """Equation 17: KL(M(t) || M(x)), in the printed order of its arguments; for a span the mean over its two ends."""
    possible = whole > -torch.inf
    logs = [torch.where(possible, decisions.log_softmax(-1), 0) for decisions in (kept, whole)]
    return (torch.where(possible, logs[0].exp(), 0) * (logs[0] - logs[1])).sum(-1).mean(-1)


def smoothed(
    shares: Float[Tensor, "batch tokens"], present: Bool[Tensor, "batch tokens"], smoothing: float
) -> Float[Tensor, "batch tokens"]:
    """The shares mixed with the uniform distribution over present tokens, so that logarithms exist where sparsemax
    gives zero."""
    uniform = present.to(shares) / present.sum(1, keepdim=True)
    return (1 - smoothing) * shares + smoothing * uniform


def divergence(
    shares: Float[Tensor, "batch tokens"],
    others: Float[Tensor, "batch tokens"],
    present: Bool[Tensor, "batch tokens"],
) -> Float[Tensor, " batch"]:
    """KL(shares || others), both above zero at every present token."""
    logs = [torch.where(present, values, 1).log() for values in (shares, others)]
    return (torch.where(present, shares, 0) * (logs[0] - logs[1])).sum(1)


def consistency_loss(
    shares: Float[Tensor, "batch tokens"],
    states: Float[Tensor, "batch tokens hidden"],
    smoothing: float,
    floor: float,
) -> Float[Tensor, ""]:
    """Equations 13 and 19: the mean over pairs of KL(r_i || r_j) / (||H_i - H_j|| + floor), one number for the batch.

    Texts of different lengths are compared position by position on the batch's width: missing states are zero, and so
    are explanations before their smoothing over all positions. The paper's pairs have no order but KL does, so both
    directions of every pair count. Three matrix products, no loop over pairs.
    """
    everywhere = torch.ones_like(shares, dtype=torch.bool)
    mixed = smoothed(shares, everywhere, smoothing)
    logs = mixed.log()
    divergences = (mixed * logs).sum(1)[:, None] - mixed @ logs.T
    pairs = ~torch.eye(len(shares), dtype=torch.bool, device=shares.device)
    weighted = divergences / (_between(states.flatten(1)) + floor)
    return weighted[pairs].mean()


def clustering_loss(shares: Float[Tensor, "batch tokens"], labels: Int[Tensor, " batch"]) -> Float[Tensor, ""]:
    """Equation 20: the mean squared distance between explanations of one class, minus that between classes.

    The paper prints a sum of "min" and "max" terms and says that the second distances are maximised, so they get a
    minus. One number for the batch; a batch of one class, or without two texts of one class, lacks that term.
    """
    distances = _between(shares).square()
    same = labels[:, None] == labels[None, :]
    others = ~torch.eye(len(shares), dtype=torch.bool, device=shares.device)
    near, far = distances[same & others], distances[~same]
    return (near.mean() if len(near) else distances.sum() * 0) - (far.mean() if len(far) else 0)


def _between(rows: Float[Tensor, "batch features"]) -> Float[Tensor, "batch batch"]:
    """L2 distances of all pairs by one matrix product; the gradient of equal rows is zero."""
    squares = rows.square().sum(1)
    gaps = squares[:, None] + squares[None, :] - 2 * rows @ rows.T
    return gaps.clamp_min(torch.finfo(rows.dtype).eps).sqrt()
