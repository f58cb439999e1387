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
    """Of each row of the table, in single precision: what `nearest_rows` needs and a caller can keep."""
    return torch.cat([rows_of(ids).float().square().sum(1) for ids in _blocks(size)])


def nearest_rows(
    rows_of: Rows, lengths: Float[Tensor, " size"], wanted: Int[Tensor, " rows"], count: int
) -> Int[Tensor, "rows entries"]:
    """The `count` rows at the smallest Euclidean distance from each wanted one, the nearest first, itself left out.

    `lengths` are the squared ones of the table's rows. All other rows where the table has no more. In single precision,
    where the table is; the result is on the CPU.
    """
    count, portion = min(count, len(lengths) - 1), max(1, NUMBERS // len(lengths))
    parts = [wanted[start : start + portion] for start in range(0, len(wanted), portion)]
    found = [_nearest(rows_of, lengths, some, count) for some in parts]
    return torch.cat(found) if found else torch.zeros(0, count, dtype=torch.int32)


def _nearest(
    rows_of: Rows, lengths: Float[Tensor, " size"], wanted: Int[Tensor, " rows"], count: int
) -> Int[Tensor, "rows entries"]:
    queries = rows_of(wanted).float()
    products = torch.cat([queries @ rows_of(ids).float().T for ids in _blocks(len(lengths))], 1)
    # The queries' own lengths change no order.
    distances = lengths - 2 * products
    distances[torch.arange(len(wanted)), wanted] = torch.inf
    return distances.topk(count, dim=1, largest=False).indices.int().cpu()


def _blocks(size: int) -> list[Int[Tensor, " _rows"]]:
    return [torch.arange(start, min(start + BLOCK, size)) for start in range(0, size, BLOCK)]
