"""Move word embeddings by small random vectors, one per vocabulary entry, while a context is open."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from raison.core.capabilities.embeddings import Shift
from raison.models.stack.hooks import hooked

CHUNK = 8192
"""Rows of an embedding table that are measured at a time."""


def ball_vector(draw: int, token: int, features: int) -> Float[np.ndarray, " features"]:
    """A point drawn uniformly from the unit ball, the same for the same draw, token and number of features.

    A normal vector has a uniform direction; the share of a ball's volume within radius r is r^features.
    """
    rng = np.random.default_rng([draw, token])
    direction = rng.standard_normal(features)
    return direction / np.linalg.norm(direction) * rng.uniform() ** (1 / features)


def mean_norm(table: nn.Module) -> float:
    """Mean L2 norm of the embeddings that a table gives, whatever hooks are on it."""
    weight: Tensor = table.weight  # type: ignore[assignment]
    total = 0.0
    with torch.no_grad():
        for start in range(0, len(weight), CHUNK):
            ids = torch.arange(start, min(start + CHUNK, len(weight)), device=weight.device)
            # Not the rows of the weight: some tables scale what they give. And no call of the module: it has hooks.
            total += table.forward(ids).float().norm(dim=-1).sum().item()
    return total / len(weight)


@contextmanager
def shifted_tables(tables: Sequence[nn.Module], shift: Shift, fixed: Collection[int]) -> Iterator[None]:
    """Inside the context, each id's embedding is shifted by the id's own vector; `fixed` ids are not shifted.

    All given tables must be equal. Vectors lie in the ball of radius shift.radius x mean norm of the table's
    embeddings. Contexts can be nested; their vectors add up. Nothing is written to the tables: leaving, also through an
    exception, removes the hooks.
    """
    vectors = _Displacements(shift, shift.radius * mean_norm(tables[0]), fixed)

    def move(_module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
        return output + vectors.of(args[0], output)

    with hooked(tables, after=move):
        yield


class _Displacements:
    """The displacements of the ids met so far: drawn once each, kept where the model computes."""

    def __init__(self, shift: Shift, radius: float, fixed: Collection[int]) -> None:
        self._shift = shift
        self._radius = radius
        # Row 0 is for all that stay.
        self._rows: dict[int, int] = dict.fromkeys(fixed, 0)
        self._drawn: Tensor | None = None

    def of(self, ids: Int[Tensor, "batch tokens"], embeds: Tensor) -> Float[Tensor, "batch tokens hidden"]:
        """The vector of every id, in the embeddings' dtype and on their device."""
        distinct, inverse = ids.unique(return_inverse=True)
        # At least in single precision: a twin of 16 bits may ask first.
        exact = torch.promote_types(embeds.dtype, torch.float32)
        known = embeds.new_zeros(1, embeds.shape[-1], dtype=exact) if self._drawn is None else self._drawn
        new = [token for token in distinct.tolist() if token not in self._rows]
        if new:
            drawn = np.stack([self._radius * ball_vector(self._shift.draw, token, embeds.shape[-1]) for token in new])
            self._rows.update(zip(new, range(len(known), len(known) + len(new)), strict=True))
            known = torch.cat([known, torch.from_numpy(drawn).to(known)])
        self._drawn = known
        rows = torch.as_tensor([self._rows[token] for token in distinct.tolist()], device=known.device)
        return known[rows[inverse.to(known.device)]].to(embeds)
