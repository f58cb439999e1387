"""Attention of the last layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

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
class AttentionLast(Method):
    """The attention of the last layer at the position that the prediction is made from.

    score = r . A_L, with A_L the mean over heads of the last layer's attention (query x key) and r the model's
    prediction rows: one for the last token of a decoder or the first token of a model that predicts from it, equal
    shares where the model pools a mean. Returns (batch, tokens): shares that sum to 1 over all tokens, special ones
    included, never negative.

    In an encoder-decoder the last attention is the decoder's to the encoder: other tokens of the decoder score zero.

    1 forward pass, which can be the prediction's own (the paper counts 0). Finding the prediction rows can cost the
    model one more for the whole batch.

    `queries="all"` takes the mean over the rows of all tokens instead. In a decoder, early tokens then score higher
    because more rows can see them.

    Guarantees nothing about the prediction: the scores are the same for every target, the attended states no longer
    belong to single tokens, and values and the heads' weights are ignored.

    Differences from the paper: this is the baseline A-Last of Kariyappa et al. 2024, who name only the layer and cite
    Hollenstein and Beinborn. The mean over heads and the row are choices made here.

    Reference: hollenstein2021relative; kariyappa2024progressive.
    """

    queries: Queries = "prediction"

    reference: ClassVar[str] = "hollenstein2021relative"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({AttentionLayers})
    properties: ClassVar[frozenset[Property]] = frozenset(
        {Property.TOKENWISE, Property.UNSIGNED, Property.DIFFERENTIABLE}
    )
    passes: ClassVar[str] = "1 forward"

    def __post_init__(self) -> None:
        check_queries("attention_last", self.queries)

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
    attention = without_padding(layers[-1].mean(1).cpu().double(), present)
    return (rows[:, None] @ attention)[:, 0]
