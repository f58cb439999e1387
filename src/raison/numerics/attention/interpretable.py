"""Explanations from a model's attention, through coefficients that can be trained: IvRA's module and SMaT's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from raison.core.dims import Attention, HeadStates
from raison.core.errors import LoadError, UnknownNameError

Normalization = Literal["softmax", "sparsemax"]
NORMS: tuple[Normalization, ...] = get_args(Normalization)

_LIKELY = 8
"""Number of entries that are sorted first; rows with more entries above zero are computed again."""


@dataclass(frozen=True, slots=True)
class Coefficients:
    """The coefficients of IvRA's module: a weight per layer, head and feature for queries and keys, per head, and per
    layer."""

    query: Float[Tensor, "layers heads features"]
    key: Float[Tensor, "layers heads features"]
    heads: Float[Tensor, "layers heads"]
    layers: Float[Tensor, " layers"]


@dataclass(frozen=True, slots=True)
class TokenMasks:
    """The tokens that attend, and those that the explanation is spread over."""

    attending: Bool[Tensor, "batch tokens"]
    explained: Bool[Tensor, "batch tokens"]


def check_norm(norm: str) -> None:
    """Raise UnknownNameError for an unknown norm, LoadError if its library is missing."""
    if norm not in NORMS:
        raise UnknownNameError("norm", norm, NORMS)
    if norm == "sparsemax":
        _library()


def normalised(
    scores: Float[Tensor, "*rows entries"], norm: Normalization, present: Bool[Tensor, "*rows entries"] | None = None
) -> Float[Tensor, "*rows entries"]:
    """NORM over the last axis: at least 0, of sum 1, exactly 0 where nothing is present."""
    if present is None:
        return scores.softmax(-1) if norm == "softmax" else sparsemax(scores)
    if norm == "softmax":
        return scores.masked_fill(~present, -torch.inf).softmax(-1)
    # Entries more than 1 below the largest get zero; -inf would give NaN in the library's sums.
    floor = scores.detach().masked_fill(~present, -torch.inf).amax(-1, keepdim=True) - 2
    return sparsemax(torch.where(present, scores, floor))


def sparsemax(scores: Float[Tensor, "*rows entries"]) -> Float[Tensor, "*rows entries"]:
    """The projection of each row onto the simplex (Martins and Astudillo 2016), differentiable twice.

    entmax finds the entries that stay above zero. Given these, the projection is linear and is computed as such, so
    that gradients of gradients are exact.
    """
    shares: Tensor = _library()(scores.detach().float(), dim=-1, k=min(_LIKELY, scores.shape[-1]))
    if not torch.is_grad_enabled():
        return shares.to(scores)
    support = shares > 0
    inside = torch.where(support, scores, 0)
    threshold = (inside.sum(-1, keepdim=True) - 1) / support.sum(-1, keepdim=True)
    return torch.where(support, scores - threshold, 0)


def interpretable_attention(
    queries: Sequence[HeadStates],
    keys: Sequence[HeadStates],
    coefficients: Coefficients,
    places: TokenMasks,
    norm: Normalization,
) -> Float[Tensor, "batch tokens"]:
    """r of IvRA (Xie et al. 2024, equations 1 to 5): at least 0, of sum 1 over the explained tokens, 0 elsewhere.

    Queries and keys are given layer by layer; keys have as many heads as queries. Per layer l and head h
    q~_n = NORM(omega_Q * q_n) and k~_m = NORM(omega_K * k_m), each over its features; psi_m = mean over the attending
    tokens n of q~_n . k~_m; Psi = NORM of lambda_h psi_m over all heads and tokens of the layer, summed over heads;
    r = NORM of eta_l Psi_m over all layers and tokens, summed over layers. No attention map is formed: the mean over n
    is taken before the product, so that the cost is linear in the tokens.
    """
    maps = []
    for layer, (query, key) in enumerate(zip(queries, keys, strict=True)):
        omega_q, omega_k = coefficients.query[layer, :, None], coefficients.key[layer, :, None]
        mean = _mean_over(normalised(omega_q * query.float(), norm), places.attending)
        psi = torch.einsum("bhf,bhtf->bht", mean, normalised(omega_k * key.float(), norm))
        maps.append(_shared(coefficients.heads[layer, :, None] * psi, places.explained, norm))
    return _shared(coefficients.layers[:, None] * torch.stack(maps, 1), places.explained, norm)


def mixed_heads(
    scores: Sequence[Attention], mix: Float[Tensor, " coefficients"], places: TokenMasks
) -> Float[Tensor, "batch tokens"]:
    """The scores that SMaT's explainer normalises (Fernandes et al. 2022): attention scores of all layers before their
    softmax.

    Averaged over the attending tokens that see a token, the heads of all layers mixed by `mix`, in the layers' order;
    -inf at tokens that are not explained.
    """
    heads = torch.cat([layer.float() for layer in scores], dim=1)
    present = places.attending
    # Masks add the most negative number: hidden entries are excluded from the mean, not multiplied by zero.
    seen = (heads > torch.finfo(scores[0].dtype).min / 2) & present[:, None, :, None] & present[:, None, None, :]
    means = torch.where(seen, heads, 0).sum(2) / seen.sum(2).clamp_min(1)
    return torch.einsum("h,bhk->bk", mix, means).masked_fill(~places.explained, -torch.inf)


def _mean_over(
    states: Float[Tensor, "batch heads tokens features"], attending: Bool[Tensor, "batch tokens"]
) -> Float[Tensor, "batch heads features"]:
    share = attending.to(states) / attending.sum(1, keepdim=True)
    return torch.einsum("bt,bhtf->bhf", share, states)


def _shared(
    scores: Float[Tensor, "batch groups tokens"], explained: Bool[Tensor, "batch tokens"], norm: Normalization
) -> Float[Tensor, "batch tokens"]:
    """NORM over groups and tokens together, summed over the groups."""
    present = explained[:, None].expand(scores.shape)
    return normalised(scores.flatten(1), norm, present.flatten(1)).view(scores.shape).sum(1)


def _library() -> Callable[..., Tensor]:
    # Imported here: only sparsemax needs the package.
    try:
        from entmax import sparsemax as projected
    except ImportError:
        raise LoadError("sparsemax needs the package entmax: pip install 'raison[sparse]'.") from None
    return projected
