"""The losses of attributive masking, one number per text."""

from typing import get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from raison.core.errors import UnknownNameError
from raison.numerics.losses.loss_weights import LossWeights as LossWeights
from raison.numerics.losses.loss_weights import MaskSize as MaskSize


def check_mask_size(kind: str) -> None:
    """Raise UnknownNameError unless it names a measure of a mask's size."""
    if kind not in get_args(MaskSize):
        raise UnknownNameError("mask size", kind, get_args(MaskSize))


def blend(
    embeds: Float[Tensor, "batch tokens hidden"],
    substitutes: Float[Tensor, "#batch #tokens hidden"],
    shares: Float[Tensor, "batch tokens"],
) -> Float[Tensor, "batch tokens hidden"]:
    """M(a, x) = a x + (1 - a) m, token by token (equation 3)."""
    kept = shares[..., None].to(embeds.dtype)
    return kept * embeds + (1 - kept) * substitutes


def prediction_loss(
    logits: Float[Tensor, "batch classes"], wanted: Float[Tensor, "batch classes"], multi_label: bool
) -> Float[Tensor, " batch"]:
    """Cross-entropy -sum_j y_j log p_j between the prediction and the wanted probabilities, in nats (equation 5).

    For multi-label models: the sum of the classes' binary cross-entropies.
    """
    if multi_label:
        return -(wanted * functional.logsigmoid(logits) + (1 - wanted) * functional.logsigmoid(-logits)).sum(-1)
    return -(wanted * logits.log_softmax(-1)).sum(-1)


def inverse_loss(
    logits: Float[Tensor, "batch classes"], index: Int[Tensor, " batch"], multi_label: bool
) -> Float[Tensor, " batch"]:
    """-log(1 - p_y), in nats, computed without forming 1 - p (equation 6)."""
    lost = index[:, None]
    if multi_label:
        return -functional.logsigmoid(-logits.gather(1, lost)[:, 0])
    return logits.logsumexp(-1) - logits.scatter(1, lost, -torch.inf).logsumexp(-1)


def size_loss(
    shares: Float[Tensor, "batch units"], present: Bool[Tensor, "batch units"], kind: MaskSize
) -> Float[Tensor, " batch"]:
    """Mean over a text's units of -log(1 - a), the cross-entropy with an empty mask (equation 7), or of a ("l1").

    The logarithm is bounded at -100: a mask of exactly one has a finite loss.
    """
    sizes = (
        shares if kind == "l1" else functional.binary_cross_entropy(shares, torch.zeros_like(shares), reduction="none")
    )
    return (sizes * present).sum(-1) / present.sum(-1)
