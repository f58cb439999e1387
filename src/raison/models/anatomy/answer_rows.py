"""Rows of a causal model's attention: those of an answer's tokens alone, to all tokens before them."""

from collections.abc import Sequence
from typing import final

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from raison.core.capabilities.answer_attention import AnswerAttention
from raison.core.inputs.encoding import Encoding
from raison.models.passes.prefixes.prefix import compute_prefix
from raison.models.stack.caches import given_cache
from raison.models.stack.eval_mode import evaluating
from raison.models.stack.tap import tap

TOGETHER = 16
"""Number of rows whose attention is in memory at once."""


@final
class TokenAttention(AnswerAttention):
    """The row that predicts each token of an output; every text is the beginning of the longest one."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._model = model

    def answer_attention(self, encoding: Encoding) -> list[Float[Tensor, "layers heads _tokens"]]:
        lengths = encoding.attention_mask.sum(1).tolist()
        ids = max(zip(lengths, encoding.input_ids.tolist(), strict=True))[1][: max(lengths)]
        return [*mean_rows(self._model, ids, [range(length - 1, length) for length in lengths])]


def mean_rows(
    model: PreTrainedModel, ids: Sequence[int], groups: Sequence[range]
) -> Float[Tensor, "groups layers heads tokens"]:
    """Each head's attention to each token, averaged over the rows of each group; rows of a group follow each other.

    One pass: the tokens before the first row are read without the tap, then a few rows at a time with their stored keys
    and values, so that only the attention of these rows is held.
    """
    base: PreTrainedModel = model.base_model  # type: ignore[assignment]
    table = torch.tensor(ids, device=base.device)
    first, last = min(rows.start for rows in groups), max(rows.stop for rows in groups)
    means: Tensor | None = None
    with torch.no_grad(), evaluating(model):
        # A prompt of one token has nothing before its first row.
        cache = compute_prefix(base, table[:first]).cache(1) if first else DynamicCache()
        for start in range(first, last, TOGETHER):
            places = range(start, min(start + TOGETHER, last))
            seen = _rows(base, table, places, cache)
            if means is None:
                means = torch.zeros(len(groups), *seen.shape[:2], len(ids), dtype=torch.float64)
            for group, rows in enumerate(groups):
                inside = [row - start for row in rows if row in places]
                means[group, :, :, : places.stop] += seen[:, :, inside].sum(2) / len(rows)
    assert means is not None, "every group has a row"
    return means


def _rows(
    base: PreTrainedModel, table: Int[Tensor, " tokens"], places: range, cache: DynamicCache
) -> Float[Tensor, "layers heads query key"]:
    """The attention of the tokens at these places; their keys and values go into the cache."""
    position = torch.tensor([[*places]], device=base.device)
    with tap(base) as record:
        base(
            input_ids=table[position],
            attention_mask=torch.ones(1, places.stop, dtype=torch.long, device=base.device),
            position_ids=position,
            use_cache=True,
            **given_cache(base, cache),
        )
    return torch.stack([record.probabilities[layer][0].cpu().double() for layer in sorted(record.probabilities)])
