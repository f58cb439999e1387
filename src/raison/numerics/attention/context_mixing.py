"""Matrices of how much each position receives from the others, layer by layer."""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from raison.core.dims import Attention

Mixing = Float[Tensor, "batch query key"]


def head_mean(attention: Attention, mask: Bool[Tensor, "batch tokens"]) -> Mixing:
    """The mean over heads in float64, on the CPU; rows and columns of padding are set to zero."""
    fine = attention.detach().to(torch.promote_types(attention.dtype, torch.float32))
    mean = fine.mean(1).cpu().double()
    return mean.masked_fill(~(mask[:, :, None] & mask[:, None, :]), 0)


def with_residual(mean: Mixing, mask: Bool[Tensor, "batch tokens"]) -> Mixing:
    """(A + I) / 2 with rows rescaled to sum to 1 (Abnar and Zuidema 2020, equation 1); rows of padding stay zero."""
    mixed = (mean + torch.diag_embed(mask.to(mean))) / 2
    return mixed / mixed.sum(-1, keepdim=True).clamp_min(torch.finfo(mixed.dtype).tiny)


def followed(rows: Float[Tensor, "batch query"], layers: Sequence[Mixing]) -> Float[Tensor, "batch key"]:
    """rows . M_L ... M_1 for `layers` M_1 ... M_L: one row times a matrix per layer, from the last one down."""
    flow = rows[:, None]
    for mixing in reversed(layers):
        flow = flow @ mixing
    return flow[:, 0]


def gathered(rows: Float[Tensor, "batch query"], layers: Sequence[Mixing]) -> Float[Tensor, "batch key"]:
    """rows . ((I + M_L) ... (I + M_1) - I): what the matrices contribute, without the initial identity."""
    flow = rows[:, None]
    came = torch.zeros_like(flow)
    for mixing in reversed(layers):
        # Kept separate from the initial identity, which may be far larger.
        came = came + (flow + came) @ mixing
    return came[:, 0]


def gathered_across(
    rows: Float[Tensor, "batch query"], layers: Sequence[Mixing], border: int
) -> Float[Tensor, "batch key"]:
    """The same for an encoder's positions, up to `border`, and those of a decoder that attends to them.

    Each matrix is zero except in one of three parts: the encoder's, the decoder's, or from the decoder to the encoder
    (Chefer et al. 2021, equations 5 to 10).
    """
    width = rows.shape[1]
    encoder, decoder = torch.eye(border).to(rows), torch.eye(width - border).to(rows)
    within, inner, across = decoder, encoder, rows.new_zeros(width - border, border)
    for layer in layers:
        inner = inner + layer[:, :border, :border] @ inner
        to_own = layer[:, border:, border:]
        within, across = within + to_own @ within, across + to_own @ across
        to_encoder = layer[:, border:, :border]
        across = across + _rescaled(within, decoder).mT @ to_encoder @ _rescaled(inner, encoder)
    read = rows[:, None, border:]
    return torch.cat([read @ across, read @ (within - decoder)], -1)[:, 0]


def _rescaled(mixing: Mixing, identity: Float[Tensor, "query key"]) -> Mixing:
    """The identity plus the rest of the matrix, with the rest's rows rescaled to sum to 1 (equations 8 and 9)."""
    came = mixing - identity
    return identity + came / came.sum(-1, keepdim=True).clamp_min(torch.finfo(came.dtype).tiny)


def passing(mixing: Mixing) -> Mixing:
    """Rows of zeros become rows of the identity: those of the other stack, and of padding."""
    return mixing + torch.diag_embed((mixing.sum(-1) == 0).to(mixing))


def shares(distances: Float[Tensor, "query key"]) -> Float[Tensor, "query key"]:
    """Rows rescaled to sum to 1; a row of zeros becomes a row of the identity."""
    total = distances.sum(-1, keepdim=True)
    identity = torch.eye(len(distances), dtype=distances.dtype)
    return torch.where(total > 0, distances / total.clamp_min(torch.finfo(distances.dtype).tiny), identity)
