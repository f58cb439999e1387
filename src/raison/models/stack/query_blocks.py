"""Eager attention for some queries at a time, so that memory does not grow with the square of a text's length.

Each query's output depends only on its own row of attention. The rows of a block are computed again in the backward
pass, one block after the other, and the gradients of keys and values add up. No block keeps its results.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from raison.core.dims import HeadStates

Again = Callable[[], AbstractContextManager[object]]
Eager = Callable[..., tuple[Tensor, Tensor | None]]
_Part = Callable[[Tensor, Tensor, Tensor, slice], Tensor]
"""(queries of a block, keys, values, the block's place) -> outputs, with the queries as the second axis."""

NUMBERS = 1 << 21
"""Maximum number of attention entries in a block, over all texts and heads."""
_IGNORED = ("position_ids", "cache_position")
"""Arguments that attention functions get but do not read."""
_WANTED: ContextVar[Again | None] = ContextVar("raison_query_blocks", default=None)


@contextmanager
def query_blocks(again: Again) -> Iterator[None]:
    """Inside, attention that is tapped and neither recorded nor edited is computed in blocks by this thread.

    `again` opens the context for recomputing a block in the backward pass, where no torch mode is active.
    """
    token = _WANTED.set(again)
    try:
        yield
    finally:
        _WANTED.reset(token)


@dataclass(frozen=True, slots=True, eq=False)
class Heads:
    """The queries, keys and values of a layer's heads: (texts, heads, tokens, features). Several queries may share a
    key and value."""

    query: Tensor
    key: Tensor
    value: Tensor


def in_blocks(eager: Eager, heads: Heads, mask: Tensor | None, kwargs: dict[str, Any]) -> Tensor | None:
    """The output of an eager attention function; gradients reach queries, keys and values.

    None if no blocks are wanted or one is enough, or if another argument may have an entry for each query.
    """
    again, rows = _WANTED.get(), rows_of(heads.query)
    others = (value for name, value in kwargs.items() if name not in _IGNORED)
    if (
        again is None
        or rows >= heads.query.shape[2]
        or any(isinstance(one, Tensor) and one.dim() > 1 for one in others)
    ):
        return None

    def part(some: Tensor, key: Tensor, value: Tensor, place: slice) -> Tensor:
        last = _reach(mask, place)
        block_mask = None if mask is None else mask[..., place, :last]
        return eager(some, key[:, :, :last], value[:, :, :last], block_mask, **kwargs)[0]

    # Not every version of torch annotates it.
    apply: Callable[..., Tensor] = _BlockedAttention.apply
    return apply(heads.query, heads.key, heads.value, _Blocked(part, again, rows))


def rows_of(query: HeadStates) -> int:
    """How many queries a block has."""
    texts, heads, queries, _ = query.shape
    return max(1, NUMBERS // (texts * heads * queries))


def _reach(mask: Tensor | None, place: slice) -> int | None:
    """The number of keys up to the last one that a query of the block sees; None: all of them.

    A causal mask hides the keys after a block, which makes its attention smaller.
    """
    if mask is None or mask.dtype == torch.bool:
        return None
    block_mask = mask[..., place, :]
    seen = (block_mask > torch.finfo(block_mask.dtype).min).flatten(0, -2)
    # A query that sees no key attends to all keys equally.
    return int(seen.any(0).nonzero()[-1]) + 1 if bool(seen.any(1).all()) else None


@dataclass(frozen=True, slots=True, eq=False)
class _Blocked:
    """How a block is computed, the context for recomputing it, and its number of queries."""

    part: _Part
    again: Again
    rows: int

    def places(self, query: Tensor) -> list[slice]:
        return [slice(start, start + self.rows) for start in range(0, query.shape[2], self.rows)]


class _BlockedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, how: _Blocked) -> Tensor:
        ctx.save_for_backward(query, key, value)
        ctx.how = how
        # Detached, so that rules that watch the calls see no gradients here.
        query, key, value = query.detach(), key.detach(), value.detach()
        return torch.cat([how.part(query[:, :, block], key, value, block) for block in how.places(query)], dim=1)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        how: _Blocked = ctx.how
        query, key, value = ctx.saved_tensors
        sums = [torch.zeros_like(state) for state in (query, key, value)]
        for block in how.places(query):
            some, keys, values = (state.detach().requires_grad_() for state in (query[:, :, block], key, value))
            with torch.enable_grad(), how.again():
                output = how.part(some, keys, values, block)
            gradients = torch.autograd.grad(output, (some, keys, values), grads[0][:, block])
            sums[0][:, :, block] = gradients[0]
            sums[1] += gradients[1]
            sums[2] += gradients[2]
        return sums[0], sums[1], sums[2], None
