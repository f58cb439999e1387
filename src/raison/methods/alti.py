"""ALTI: aggregation of layer-wise token-to-token interactions."""

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
class Alti(Method):
    """Propagates each token's contribution through the layers, weighting it by its proximity to the layer's output.

    score = r . C^L ... C^1 (Ferrando et al. 2022, section 3), where C^l has the rows

    c_ij = max(0, ||y_i||_1 - ||y_i - T_ij||_1), divided by their sums,
        T_ij = gamma_1 (z_ij - mean z_ij) / sigma_1i,
        z_ij = sum_h A^h_ij W_O^h (W_V^h x_j + b_V^h) + [i = j] x_i.

    y_i is the output of the norm after attention, biases b_O and beta included, sigma_1i is that norm's divisor, and r
    are the model's prediction rows. Returns (batch, tokens): shares that sum to 1 over all tokens, special ones
    included, never negative.

    1 forward pass, and in each layer a product of (tokens x tokens) vectors over the heads, a small part of a pass for
    each token.

    In pre-norm models (GPT-2, Llama, T5, ModernBERT) nothing is normalised after the sum. As in ALTI+ (Ferrando et al.
    2022b), T_ij = z_ij is then the contribution to the residual stream y_i after attention; x_j is normalised inside
    W_V x_j and not in [i = j] x_i.

    Guarantees nothing about the prediction: the scores are the same for every target, and the feed-forward layers and
    the head are ignored.

    Differences from the paper: r is the first token's row for a model that predicts from it, the last token's for a
    decoder, and the mean where the model pools a mean; pre-norm models are supported. A row in which no token's
    contribution points towards the sum cannot be normalised, and passes nothing on.

    Reference: ferrando2022measuring; ferrando2022towards.
    """

    reference: ClassVar[str] = "ferrando2022measuring"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({Anatomy})
    properties: ClassVar[frozenset[Property]] = frozenset({Property.TOKENWISE, Property.UNSIGNED})
    passes: ClassVar[str] = "1 forward"

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        return token_flow(problem, _mixing)

    def cost(self, units: int) -> Cost:
        return Cost(forwards=1)


def _mixing(trace: Trace, layer: int, weights: LayerWeights) -> Float[Tensor, "query key"]:
    """One layer's matrix C."""
    norm = None if weights.norm_first else weights.attention_norm
    whole = attended(trace, layer, weights)
    made = whole if norm is None else norm(whole)
    proximities = []
    for rows, part in contributions(trace, layer, weights):
        if norm is not None:
            part = norm.linear(part, norm.sigma(whole[rows, None]))
        goal = made[rows, None]
        proximities.append((goal.abs().sum(-1) - (goal - part).abs().sum(-1)).clamp_min(0))
    near = torch.cat(proximities).double()
    return near / near.sum(-1, keepdim=True).clamp_min(torch.finfo(near.dtype).tiny)
