"""Scores that are read off the attention of one pass: in batches, or for given embeddings with a gradient."""

from collections.abc import Callable, Sequence
from typing import Literal, get_args

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from raison.core.capabilities.attention_layers import AttentionLayers, Positions
from raison.core.capabilities.passes import Passes
from raison.core.dims import Attention, Embeddings
from raison.core.errors import UnknownNameError
from raison.core.inputs.encoding import Encoding
from raison.core.model import LanguageModel
from raison.core.problem import Problem
from raison.integration.distinct import in_distinct_batches

Present = Bool[Tensor, "batch positions"]
Queries = Literal["all", "prediction"]
"""The rows of the attention that are read: those of all tokens, or those that the model predicts from."""
Rows = Float[Tensor, "batch positions"]
Read = Callable[[Sequence[Attention], Present, Rows], Rows]
"""Scores from the attention of each layer, the mask of non-padding positions and the weight of each row."""


def check_queries(method: str, queries: str) -> None:
    """UnknownNameError unless they name rows that can be read."""
    if queries not in get_args(Queries):
        raise UnknownNameError(f"queries of {method}", queries, get_args(Queries))


def attended_scores(problem: Problem, queries: Queries, read: Read) -> Float[Tensor, "batch scored"]:
    """The scores of all texts; one forward pass for all targets of a text."""
    encoding, model = problem.encoding, problem.model
    scores = torch.zeros(encoding.input_ids.shape, dtype=torch.float64)
    # Which rows predict is found once, and not batch by batch.
    model.ask(AttentionLayers).positions(encoding.select([0]))

    def run(texts: list[int]) -> Tensor:
        with torch.no_grad():
            return _read(model, encoding.select(texts), queries, read)

    for texts, places, of_texts in in_distinct_batches(problem, run):
        scores[texts, : of_texts.shape[1]] = of_texts[places]
    problem.count_forward()
    return scores


def attended_scores_at(
    problem: Problem, embeds: Embeddings, queries: Queries, read: Read
) -> Float[Tensor, "batch scored"]:
    """The same for these embeddings, differentiable; see Method.scores_at."""
    problem.model.ask(AttentionLayers).positions(problem.encoding.select([0]))
    with torch.enable_grad():
        return _read(problem.model, problem.encoding, queries, read, embeds)


def _read(
    model: LanguageModel, part: Encoding, queries: Queries, read: Read, embeds: Embeddings | None = None
) -> Float[Tensor, "batch tokens"]:
    attention = model.ask(AttentionLayers)
    positions = attention.positions(part)
    with attention.recorded() as records:
        model.ask(Passes).logits(part, embeds)
    width = positions.present.shape[1]
    layers = [block.placed(block.probabilities, width) for block in records.blocks]
    return positions.to_tokens(read(layers, positions.present, _shares(positions, queries)))


def _shares(positions: Positions, queries: Queries) -> Float[Tensor, "batch positions"]:
    """How much each row of the attention counts, summing to 1."""
    if queries == "prediction":
        return positions.rows.cpu().double()
    present = positions.present.double()
    return present / present.sum(1, keepdim=True)


def without_padding(attention: Float[Tensor, "batch query key"], present: Present) -> Float[Tensor, "batch query key"]:
    """Zero where padding attends or is attended to: that may be anything."""
    mask = present.to(attention.device)
    return attention.masked_fill(~(mask[:, :, None] & mask[:, None, :]), 0)
