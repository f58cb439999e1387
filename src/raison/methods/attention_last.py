"""Attention of the last layer."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.passes import Passes
from raison.core.capability import Capability
from raison.core.dims import Embeddings
from raison.core.encoding import Encoding
from raison.core.errors import UnknownNameError
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.model import LanguageModel
from raison.core.problem import Problem

Queries = Literal["prediction", "all"]


@dataclass(frozen=True)
class AttentionLast(Method):
    """The attention of the last layer at the position that the prediction is made from.

    score = r . A_L, with A_L the mean over heads of the last layer's attention (query x key) and r the model's
    prediction rows: one for the last token of a decoder or the first token of a model that predicts from it, equal
    shares where the model pools a mean. Returns (batch, tokens): shares that sum to 1 over all tokens, special ones
    included, never negative.

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
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({ReadableAttention})
    properties: ClassVar[frozenset[Property]] = frozenset(
        {Property.TOKENWISE, Property.UNSIGNED, Property.DIFFERENTIABLE}
    )
    passes: ClassVar[str] = "1 forward"

    def __post_init__(self) -> None:
        if self.queries not in get_args(Queries):
            raise UnknownNameError("queries of attention_last", self.queries, get_args(Queries))

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        encoding, model = problem.encoding, problem.model
        scores = torch.zeros(encoding.input_ids.shape, dtype=torch.float64)
        weights = self._rows(model, encoding)

        def run(rows: list[int]) -> Tensor:
            part = encoding.select(rows)
            with torch.no_grad():
                return _read(model, part, weights[rows, : part.input_ids.shape[1]])

        for rows, found in model.ask(Passes).in_batches(encoding, run):
            scores[rows, : found.shape[1]] = found
        problem.count_forward()
        return scores

    def scores_at(self, problem: Problem, embeds: Embeddings) -> Float[Tensor, "batch scored"]:
        """See Method.scores_at."""
        rows = self._rows(problem.model, problem.encoding)
        with torch.enable_grad():
            return _read(problem.model, problem.encoding, rows, embeds)

    def cost(self, units: int) -> Cost:
        return Cost(forwards=1)

    def _rows(self, model: LanguageModel, encoding: Encoding) -> Float[Tensor, "batch tokens"]:
        """How much each row of the attention counts, summing to 1."""
        if self.queries == "prediction":
            return model.ask(ReadableAttention).prediction_rows(encoding).cpu().double()
        own = encoding.attention_mask.double()
        return own / own.sum(1, keepdim=True)


def _read(
    model: LanguageModel,
    part: Encoding,
    rows: Float[Tensor, "batch tokens"],
    embeds: Embeddings | None = None,
) -> Float[Tensor, "batch tokens"]:
    with model.ask(ReadableAttention).tap() as tap:
        model.ask(Passes).logits(part, embeds)
    attention = tap.probabilities[max(tap.probabilities)].mean(1).cpu().double()
    # What padding attends to, and what attends to padding, may be anything.
    attention = attention.masked_fill(~(part.attention_mask[:, :, None] & part.attention_mask[:, None, :]), 0)
    return (rows[:, None] @ attention)[:, 0]
