"""Attention averaged over the layers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from raison.core.capabilities.attention_layers import AttentionLayers
from raison.core.capability import Capability
from raison.core.dims import Attention, Embeddings
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.problem import Problem
from raison.integration.attention_rows import (
    Queries,
    attended_scores,
    attended_scores_at,
    check_queries,
    without_padding,
)


@dataclass(frozen=True)
class AttentionAverage(Method):
    """The attention that each token gets, averaged over layers, heads and attending tokens.

    score_i = 1 / (L H T) sum_l sum_h sum_j A_lhji over layers l, heads h and all tokens j of the text, special ones
    included (the equation of section 2.2.2.3 of the thesis Assessing the Interpretability of Large Language Models).
    Returns (batch, tokens): shares that sum to 1 over all tokens, never negative.

    In an encoder-decoder j runs over the positions of both stacks, and L is, for each position, the number of layers in
    which it attends: an encoder's, or a decoder's own ones and those to the encoder. A classifier's decoder reads the
    text again: a token's score is the sum over its two positions.

    1 forward pass, which can be the prediction's own.

    `queries="prediction"` averages only over the rows that the model predicts from: the last token's of a decoder, the
    first token's of a model that predicts from it.

    Guarantees nothing about the prediction: the scores are the same for every target, and deeper layers attend to
    states that no longer belong to single tokens. In a decoder, early tokens score higher because more rows can see
    them.

    Differences from the thesis: none.

    Reference: oxford2022assessing.
    """

    queries: Queries = "all"

    reference: ClassVar[str] = "oxford2022assessing"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({AttentionLayers})
    properties: ClassVar[frozenset[Property]] = frozenset(
        {Property.TOKENWISE, Property.UNSIGNED, Property.DIFFERENTIABLE}
    )
    passes: ClassVar[str] = "1 forward"

    def __post_init__(self) -> None:
        check_queries("attention_average", self.queries)

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        return attended_scores(problem, self.queries, _read)

    def scores_at(self, problem: Problem, embeds: Embeddings) -> Float[Tensor, "batch scored"]:
        """See Method.scores_at."""
        return attended_scores_at(problem, embeds, self.queries, _read)

    def cost(self, units: int) -> Cost:
        return Cost(forwards=1)


def _read(
    layers: Sequence[Attention], present: Bool[Tensor, "batch positions"], rows: Float[Tensor, "batch positions"]
) -> Float[Tensor, "batch positions"]:
    means = [without_padding(attention.mean(1).cpu().double(), present) for attention in layers]
    # A position of one of two stacks attends in some layers only.
    counts = torch.stack([mean.sum(-1) > 0 for mean in means]).sum(0).clamp_min(1)
    return sum((((rows / counts)[:, None] @ mean)[:, 0] for mean in means), torch.zeros_like(rows))
