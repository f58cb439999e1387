"""Passes without padding, for models whose output depends on it."""

from collections.abc import Callable

import torch
from torch import Tensor
from transformers import PreTrainedConfig

from raison.core.dims import Embeddings
from raison.models.passes.outputs.heads import NetworkOutput, class_logits
from raison.models.passes.token_batch import TokenBatch

BatchRun = Callable[[TokenBatch, Embeddings | None], NetworkOutput]


def reads_padding(config: PreTrainedConfig) -> bool:
    """Whether the head reads the last position of a row, or the mean of all, padding included (XLNet)."""
    return config.to_dict().get("summary_type") in ("last", "mean", "cls_index")


def unpadded(run: BatchRun, batch: TokenBatch, embeds: Embeddings | None) -> tuple[Tensor]:
    """The class logits of all rows; rows of equal length run together, one pass per length."""
    order: list[int] = []
    logits: list[Tensor] = []
    for length in batch.lengths.unique().tolist():
        rows = (batch.lengths == length).nonzero()[:, 0].tolist()
        embedded = None if embeds is None else embeds[rows, :length]
        logits.append(class_logits(run(batch.select(rows), embedded)))
        order += rows
    return (torch.cat(logits)[torch.tensor(order).argsort()],)
