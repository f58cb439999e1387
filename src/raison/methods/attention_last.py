"""Attention of the last layer."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.errors import UnknownNameError
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.model import Capability
from raison.core.problem import Problem

Queries = Literal["prediction", "all"]


@dataclass(frozen=True)
class AttentionLast(Method):
    """How much the last layer attends to each token where the prediction is made.

    score = r . A_L, A_L the mean over heads of the last layer's attention (query x key) and r the model's prediction
    rows: one for the last token of a decoder or the first of a model that predicts from it, equal shares where the
    model pools a mean. Returns (batch, tokens): shares that sum to 1 over all tokens, special ones included, never
    negative. 1 forward pass, which could be the prediction's own (the paper counts 0; finding the prediction rows can
    cost the model one more for the whole batch).

    `queries="all"` takes the mean over the rows of all tokens instead; in a decoder early tokens, which more rows can
    see, then score higher.

    Guarantees nothing about the prediction: the scores are the same for every target, the states that are attended to
    are no longer those of single tokens, and values and heads' weights are ignored.

    Differences from the paper: Kariyappa et al. 2024, whose baseline A-Last this is, name the layer alone and cite
    Hollenstein and Beinborn; the mean over heads and the row are choices made here.

    Reference: hollenstein2021relative; kariyappa2024progressive.
    """

    queries: Queries = "prediction"

    reference: ClassVar[str] = "hollenstein2021relative"
    needs: ClassVar[frozenset[Capability]] = frozenset({Capability.ATTENTION})
    properties: ClassVar[frozenset[Property]] = frozenset({Property.TOKENWISE})
    passes: ClassVar[str] = "1 forward"

    def __post_init__(self) -> None:
        if self.queries not in get_args(Queries):
            raise UnknownNameError("queries of attention_last", self.queries, get_args(Queries))

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        encoding, model = problem.encoding, problem.model
        scores = torch.zeros(encoding.input_ids.shape, dtype=torch.float64)
        own = encoding.attention_mask.double()
        rows = model.prediction_rows(encoding) if self.queries == "prediction" else own / own.sum(1, keepdim=True)
        for group in model.batches(encoding):
            part = encoding.select(group)
            width = part.input_ids.shape[1]
            with torch.no_grad(), model.tap() as tap:
                model.logits(part)
            attention = tap.probabilities[max(tap.probabilities)].mean(1).cpu().double()
            # What padding attends to, and what attends to padding, may be anything.
            attention = attention.masked_fill(~(part.attention_mask[:, :, None] & part.attention_mask[:, None, :]), 0)
            scores[group, :width] = (rows[group, None, :width].cpu().double() @ attention)[:, 0]
        problem.count_forward()
        return scores

    def cost(self, units: int) -> Cost:
        return Cost(forwards=1)
