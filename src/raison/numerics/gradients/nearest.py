"""Nearest rows of a large table, read block by block."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

BLOCK = 8192
"""Rows of the table that are read together."""
NUMBERS = 1 << 24
"""Distances that are in memory together: 64 MB."""

Rows = Callable[[Int[Tensor, " rows"]], Float[Tensor, "rows features"]]
"""Rows of a table by their numbers."""


def squared_lengths(rows_of: Rows, size: int) -> Float[Tensor, " rows"]:
    """The squared length of each row of the table, in single precision, for `nearest_rows`."""
    return torch.cat([rows_of(ids).float().square().sum(1) for ids in _blocks(size)])


def nearest_rows(
    rows_of: Rows, lengths: Float[Tensor, " size"], wanted: Int[Tensor, " rows"], count: int
) -> Int[Tensor, "rows entries"]:
    """The `count` nearest rows of each wanted row by Euclidean distance, the nearest first, without the row itself.

    `lengths` are the squared lengths of the table's rows. If the table has fewer rows, all others are given. Computed
    in single precision on the table's device; the result is on the CPU.
    """
    count, portion = min(count, len(lengths) - 1), max(1, NUMBERS // len(lengths))
    parts = [wanted[start : start + portion] for start in range(0, len(wanted), portion)]
    nearest = [_nearest(rows_of, lengths, some, count) for some in parts]
    return torch.cat(nearest) if nearest else torch.zeros(0, count, dtype=torch.int32)


def _nearest(
    rows_of: Rows, lengths: Float[Tensor, " size"], wanted: Int[Tensor, " rows"], count: int
) -> Int[Tensor, "rows entries"]:
    queries = rows_of(wanted).float()
    products = torch.cat([queries @ rows_of(ids).float().T for ids in _blocks(len(lengths))], 1)
    # The queries' lengths do not affect the order.
    distances = lengths - 2 * products
    distances[torch.arange(len(wanted)), wanted] = torch.inf
    return distances.topk(count, dim=1, largest=False).indices.int().cpu()


def _blocks(size: int) -> list[Int[Tensor, " _rows"]]:
    return [torch.arange(start, min(start + BLOCK, size)) for start in range(0, size, BLOCK)]
