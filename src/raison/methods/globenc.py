"""GlobEnc: norms of the tokens' contributions, propagated through the layers."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.decomposition import Anatomy
from raison.core.capability import Capability
from raison.core.internals.anatomy import LayerWeights, Trace
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.problem import Problem
from raison.integration.token_flow import token_flow
from raison.numerics.attention.decomposition import attended, contributions


@dataclass(frozen=True)
class Globenc(Method):
    """Propagates each token's contribution through the layers, weighting it by its norm.

    score = r . N^L ... N^1 (Modarressi et al. 2022, section 3), with N_ij = ||v_ij||_2 in each layer, where

        z_ij = sum_h A^h_ij W_O^h (W_V^h x_j + b_V^h) + [i = j] x_i,
        u_ij = gamma_1 (z_ij - mean z_ij) / sigma_1i, v_ij = gamma_2 (u_ij - mean u_ij) / sigma_2i.

    sigma_1i and sigma_2i are the actual divisors of the layer's two norms. The second is that of the sum with the
    feed-forward layer, which has no other effect here. Biases b_O and beta belong to no token and are left out. r are
    the model's prediction rows. Returns (batch, tokens), never negative.

    1 forward pass, and in each layer a product of (tokens x tokens) vectors over the heads, a small part of a pass for
    each token.

    In pre-norm models (GPT-2, Llama, T5, ModernBERT) nothing is normalised after the sum. N_ij = ||z_ij||_2 is then the
    contribution to the residual stream after attention; x_j is normalised inside W_V x_j and not in [i = j] x_i.

    Guarantees nothing about the prediction: the scores are the same for every target, norms lose signs and directions,
    and the feed-forward layers and the head are ignored.

    Differences from the paper: each row is divided by its sum in every layer, which changes only the scale (the scores
    of all tokens, special ones included, sum to 1); r is the first token's row for a model that predicts from it, the
    last token's for a decoder, and the mean where the model pools a mean; pre-norm models are supported.

    Reference: modarressi2022globenc.
    """

    reference: ClassVar[str] = "modarressi2022globenc"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({Anatomy})
    properties: ClassVar[frozenset[Property]] = frozenset({Property.TOKENWISE, Property.UNSIGNED})
    passes: ClassVar[str] = "1 forward"

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        return token_flow(problem, _norms)

    def cost(self, units: int) -> Cost:
        return Cost(forwards=1)


def _norms(trace: Trace, layer: int, weights: LayerWeights) -> Float[Tensor, "query key"]:
    """One layer's matrix N."""
    if weights.norm_first or weights.attention_norm is None:
        return torch.cat([part.norm(dim=-1) for _, part in contributions(trace, layer, weights)])
    first, second = weights.attention_norm, weights.mlp_norm
    whole = attended(trace, layer, weights)
    state = first(whole)
    sigma_1, sigma_2 = first.sigma(whole), second.sigma(state + weights.feed_forward(state))
    norms = []
    for rows, part in contributions(trace, layer, weights):
        part = first.linear(part, sigma_1[rows, None])
        norms.append(second.linear(part, sigma_2[rows, None]).norm(dim=-1))
    return torch.cat(norms)
