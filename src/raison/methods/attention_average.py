"""Attention averaged over the layers."""

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

Queries = Literal["all", "prediction"]


@dataclass(frozen=True)
class AttentionAverage(Method):
    """The attention that each token gets, averaged over layers, heads and attending tokens.

    score_i = 1 / (L H T) sum_l sum_h sum_j A_lhji over layers l, heads h and all tokens j of the text, special ones
    included (the equation of section 2.2.2.3 of the thesis Assessing the Interpretability of Large Language Models).
    Returns (batch, tokens): shares that sum to 1 over all tokens, never negative.

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
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({ReadableAttention})
    properties: ClassVar[frozenset[Property]] = frozenset(
        {Property.TOKENWISE, Property.UNSIGNED, Property.DIFFERENTIABLE}
    )
    passes: ClassVar[str] = "1 forward"

    def __post_init__(self) -> None:
        if self.queries not in get_args(Queries):
            raise UnknownNameError("queries of attention_average", self.queries, get_args(Queries))

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        encoding, model = problem.encoding, problem.model
        scores = torch.zeros(encoding.input_ids.shape, dtype=torch.float64)
        weights = self._rows(model, encoding)

        def run(rows: list[int]) -> Tensor:
            part = encoding.select(rows)
            with torch.no_grad():
                return self._read(model, part, weights[rows, : part.input_ids.shape[1]])

        for rows, found in model.ask(Passes).in_batches(encoding, run):
            scores[rows, : found.shape[1]] = found
        problem.count_forward()
        return scores

    def scores_at(self, problem: Problem, embeds: Embeddings) -> Float[Tensor, "batch scored"]:
        """See Method.scores_at."""
        rows = self._rows(problem.model, problem.encoding)
        with torch.enable_grad():
            return self._read(problem.model, problem.encoding, rows, embeds)

    def cost(self, units: int) -> Cost:
        return Cost(forwards=1)

    def _read(
        self,
        model: LanguageModel,
        part: Encoding,
        rows: Float[Tensor, "batch tokens"],
        embeds: Embeddings | None = None,
    ) -> Float[Tensor, "batch tokens"]:
        with model.ask(ReadableAttention).tap() as tap:
            model.ask(Passes).logits(part, embeds)
        # What padding attends to, and what attends to padding, may be anything.
        other = ~(part.attention_mask[:, :, None] & part.attention_mask[:, None, :])
        means = [attention.mean(1).cpu().double().masked_fill(other, 0) for attention in tap.probabilities.values()]
        return sum(((rows[:, None] @ mean)[:, 0] for mean in means), torch.zeros_like(rows)) / len(means)

    def _rows(self, model: LanguageModel, encoding: Encoding) -> Float[Tensor, "batch tokens"]:
        """How much each row of the attention counts, summing to 1."""
        if self.queries == "prediction":
            return model.ask(ReadableAttention).prediction_rows(encoding).cpu().double()
        own = encoding.attention_mask.double()
        return own / own.sum(1, keepdim=True)
