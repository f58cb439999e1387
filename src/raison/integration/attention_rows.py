"""Scores that are read off the attention of one pass: in batches, or for given embeddings with a gradient."""

from collections.abc import Callable, Mapping
from typing import Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.passes import Passes
from raison.core.dims import Attention, Embeddings
from raison.core.encoding import Encoding
from raison.core.errors import UnknownNameError
from raison.core.model import LanguageModel
from raison.core.problem import Problem

Queries = Literal["all", "prediction"]
"""The rows of the attention that are read: those of all tokens, or those that the model predicts from."""
Rows = Float[Tensor, "batch tokens"]
Read = Callable[[Mapping[int, Attention], Encoding, Rows], Rows]
"""From the attention of each layer, the texts and how much each row counts to the tokens' scores."""


def check_queries(method: str, queries: str) -> None:
    """UnknownNameError unless they name rows that can be read."""
    if queries not in get_args(Queries):
        raise UnknownNameError(f"queries of {method}", queries, get_args(Queries))


def attended_scores(problem: Problem, queries: Queries, read: Read) -> Float[Tensor, "batch scored"]:
    """The scores of all texts; one forward pass."""
    encoding, model = problem.encoding, problem.model
    scores = torch.zeros(encoding.input_ids.shape, dtype=torch.float64)
    shares = _shares(model, encoding, queries)

    def run(texts: list[int]) -> Tensor:
        part = encoding.select(texts)
        with torch.no_grad():
            return _read(model, part, shares[texts, : part.input_ids.shape[1]], read)

    for texts, of_texts in model.ask(Passes).in_batches(encoding, run):
        scores[texts, : of_texts.shape[1]] = of_texts
    problem.count_forward()
    return scores


def attended_scores_at(
    problem: Problem, embeds: Embeddings, queries: Queries, read: Read
) -> Float[Tensor, "batch scored"]:
    """The same for these embeddings, differentiable; see Method.scores_at."""
    shares = _shares(problem.model, problem.encoding, queries)
    with torch.enable_grad():
        return _read(problem.model, problem.encoding, shares, read, embeds)


def _read(
    model: LanguageModel, part: Encoding, shares: Rows, read: Read, embeds: Embeddings | None = None
) -> Float[Tensor, "batch tokens"]:
    with model.ask(ReadableAttention).tap() as tap:
        model.ask(Passes).logits(part, embeds)
    return read(tap.probabilities, part, shares)


def _shares(model: LanguageModel, encoding: Encoding, queries: Queries) -> Float[Tensor, "batch tokens"]:
    """How much each row of the attention counts, summing to 1."""
    if queries == "prediction":
        return model.ask(ReadableAttention).prediction_rows(encoding).cpu().double()
    tokens = encoding.attention_mask.double()
    return tokens / tokens.sum(1, keepdim=True)


def without_padding(attention: Float[Tensor, "batch query key"], part: Encoding) -> Float[Tensor, "batch query key"]:
    """Zero where padding attends or is attended to: that may be anything."""
    mask = part.attention_mask.to(attention.device)
    return attention.masked_fill(~(mask[:, :, None] & mask[:, None, :]), 0)
