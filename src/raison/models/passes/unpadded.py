"""Passes without padding, for models whose output depends on it."""

from collections.abc import Callable, Iterator
from contextvars import Context

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.functional import pad
from transformers import PreTrainedConfig, PreTrainedModel

from raison.core.dims import Embeddings
from raison.models.families import UNKNOWN, family_of
from raison.models.passes.shortcuts import tried
from raison.models.passes.token_batch import TokenBatch
from raison.models.stack.structure import is_foreign

BatchRead = Callable[[TokenBatch, Embeddings | None], Tensor]
"""(rows, their embeddings) -> a tensor for each read."""

TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-4}
"""Of the largest output, or of `LEAST`: the rounding of sums over masked padding stays below it."""
ROUGH = 5e-2
"""The same in half precision."""
LEAST = 0.1


def reads_last(config: PreTrainedConfig) -> bool:
    """Whether the head reads the last position of a row, or the mean of all, padding included (XLNet)."""
    return config.to_dict().get("summary_type") in ("last", "mean", "cls_index")


def is_known(model: PreTrainedModel) -> bool:
    """Whether the model is of an architecture that is known to mask its padding; others are tried.

    Nothing is known of a class, or of a part, that neither transformers nor its usual companions have made.
    """
    of_transformers = type(model).__module__.startswith("transformers.") and family_of(model) is not UNKNOWN
    kinds = {type(module): module for module in model.modules()}
    return of_transformers and not any(map(is_foreign, kinds.values()))


@torch.no_grad()
def padding_matters(run: Callable[[TokenBatch], Tensor], batch: TokenBatch) -> bool:
    """Whether the shortest row of a batch has another output beside the longest than alone.

    `run` gives the model's logits or states. Whatever this thread does in the passes of the model is not done in these
    two. A row that cannot be run alone is left with its padding.
    """
    short, long = int(batch.lengths.argmin()), int(batch.lengths.argmax())
    alone = tried(lambda: Context().run(run, batch.select([short])))
    beside = tried(lambda: Context().run(run, batch.select([short, long])))
    if alone is None or beside is None or not alone.dim() or alone.dim() != beside.dim():
        return False
    common = tuple(slice(min(sizes)) for sizes in zip(alone.shape, beside.shape, strict=True))
    most = max(LEAST, float(alone.abs().max())) * TOLERANCE.get(alone.dtype, ROUGH)
    return not bool(((alone[common] - beside[common]).abs() <= most).all())


def apart(read: BatchRead, batch: TokenBatch, embeds: Embeddings | None, kinds: Int[Tensor, " rows"]) -> Tensor:
    """What `read` gives for all rows, where rows of equal kinds run together, one pass per kind."""
    order: list[int] = []
    found: list[Tensor] = []
    for kind in kinds.unique().tolist():
        rows = (kinds == kind).nonzero()[:, 0].tolist()
        width = int(batch.lengths[rows].max())
        found.append(read(batch.select(rows), None if embeds is None else embeds[rows, :width]))
        order += batch.reads_of(rows).tolist()
    return torch.cat(list(_as_wide(found)))[torch.tensor(order).argsort()]


def _as_wide(found: list[Tensor]) -> Iterator[Tensor]:
    """The tensors of one shape but for their rows. Places behind a shorter row get zeros, and as choices -inf."""
    shape = [max(sizes) for sizes in zip(*(one.shape[1:] for one in found), strict=True)]
    for one in found:
        lacking = [most - size for most, size in zip(shape, one.shape[1:], strict=True)]
        wide = pad(one, (0, lacking[-1]), value=-torch.inf)
        yield pad(wide, [side for more in (0, *reversed(lacking[:-1])) for side in (0, more)])
