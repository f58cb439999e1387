"""Words of the vocabulary on the way from a word to a baseline (Sanyal and Ren 2021), found once per model."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from raison.core.errors import UnsupportedError
from raison.core.model import LanguageModel
from raison.numerics.gradients.monotone_paths import Strategy, anchor_costs
from raison.numerics.gradients.nearest import nearest_rows, squared_lengths

NUMBERS = 1 << 20
"""Features of anchors that are compared at a time: 4 MB in single precision, which fits into a processor's cache."""
ZERO = -1
"""In place of a token's id: a baseline of zeros, which is not a row of the table."""


@runtime_checkable
class Vocabulary(Protocol):
    """A model whose embedding table can be read."""

    @property
    def embedding_table(self) -> nn.Module: ...


@dataclass(frozen=True, slots=True)
class AnchorWalk:
    """How anchors are chosen: among `neighbours` of the word before, `steps` of them, by `strategy`."""

    steps: int
    neighbours: int
    strategy: Strategy


class Ends(NamedTuple):
    """The start and the end of a walk, as ids."""

    word: int
    baseline: int
    """An id, or ZERO."""


@dataclass(slots=True)
class _Known:
    """Neighbours and anchors in an embedding table; valid for its `version`."""

    version: tuple[object, ...]
    lengths: Float[Tensor, " size"]
    """Squared lengths of the table's rows."""
    neighbours: dict[tuple[int, int], Tensor] = field(default_factory=dict)
    """(number of neighbours, id) -> ids."""
    anchors: dict[tuple[AnchorWalk, Ends], Tensor] = field(default_factory=dict)
    """(walk, its ends) -> ids."""


_KNOWN: WeakKeyDictionary[nn.Module, _Known] = WeakKeyDictionary()
"""Neighbours and anchors by embedding table, kept as long as the table is in use."""


def table_of(model: LanguageModel, method: str) -> nn.Module:
    """The model's embedding table; UnsupportedError if it has none."""
    if isinstance(model, Vocabulary):
        return model.embedding_table
    raise UnsupportedError(
        f"{method} does not work on {model.name}",
        ["its paths go through words of the vocabulary, and the model exposes no embedding table"],
        "Use integrated_gradients or sequential_integrated_gradients, whose paths are straight.",
    )


def anchors_of(table: nn.Module, walk: AnchorWalk, ends: Sequence[Ends]) -> Int[Tensor, "rows steps"]:
    """Ids of the anchors between each word and its baseline, from the word on.

    Each step goes to the anchor of the least cost (numerics/gradients/monotone_paths.py) among the nearest neighbours
    of the word before. The baseline and words where the walk has been are excluded; if no other is left, the walk goes
    to the baseline and stays there. Distances are those of the table itself, even if its embeddings are shifted.
    """
    known = _known(table)
    missing = sorted({pair for pair in ends if (walk, pair) not in known.anchors})
    if missing:
        for pair, ids in zip(missing, _walked(table, known, walk, missing), strict=True):
            known.anchors[walk, pair] = ids
    return torch.stack([known.anchors[walk, pair] for pair in ends])


def embedded(
    table: nn.Module,
    ids: Int[Tensor, "rows steps"],
    ends: Sequence[Ends],
    base: Float[Tensor, "rows hidden"],
) -> Float[Tensor, "rows steps hidden"]:
    """Word embeddings of the anchors of walks, under any shift of the table, and `base` at the baseline."""
    with torch.no_grad():
        # As one row, because tests count rows of the table as texts.
        flat: Tensor = table(ids.clamp(min=0).reshape(1, -1).to(_weight(table).device))
    embeds = flat.reshape(*ids.shape, -1).to(base)
    ended = ids == torch.tensor([pair.baseline for pair in ends])[:, None]
    return torch.where(ended.to(base.device)[..., None], base[:, None], embeds)


def _walked(table: nn.Module, known: _Known, walk: AnchorWalk, ends: Sequence[Ends]) -> Int[Tensor, "rows steps"]:
    words, bases = torch.tensor(ends, dtype=torch.long).reshape(-1, 2).unbind(1)
    been = words[:, None]
    for _ in range(walk.steps):
        following = _following(table, known, walk, bases, been)
        been = torch.cat([been, torch.where(been[:, -1] == bases, bases, following)[:, None]], 1)
    return been[:, 1:]


def _following(
    table: nn.Module, known: _Known, walk: AnchorWalk, bases: Int[Tensor, " rows"], been: Int[Tensor, "rows words"]
) -> Int[Tensor, " rows"]:
    """The next word of walks to these baselines, given the words visited so far."""
    near = _neighbours(table, known, been[:, -1], walk.neighbours)
    rows_of = _reader(table)
    size = max(1, NUMBERS // (near.shape[1] * _weight(table).shape[1]))
    following = []
    for part in torch.arange(len(near)).split(size):
        base = rows_of(bases[part].clamp(min=0))
        base = base.masked_fill((bases[part] == ZERO).to(base.device)[:, None], 0.0)
        current, some = rows_of(been[part, -1].clamp(min=0)), near[part]
        costs = anchor_costs(base, current, rows_of(some), walk.steps, walk.strategy).cpu()
        closed = (some[:, :, None] == been[part, None]).any(-1) | (some == bases[part, None])
        costs = costs.masked_fill(closed, torch.inf)
        best = some.gather(1, costs.argmin(1, keepdim=True))[:, 0]
        following.append(torch.where(closed.all(1), bases[part], best))
    return torch.cat(following)


def _neighbours(table: nn.Module, known: _Known, ids: Int[Tensor, " rows"], count: int) -> Int[Tensor, "rows entries"]:
    """Ids of the nearest rows of the table; for a baseline of zeros, which no walk leaves, those of row 0."""
    wanted = ids.clamp(min=0).tolist()
    missing = sorted({word for word in wanted if (count, word) not in known.neighbours})
    if missing:
        nearest = nearest_rows(_reader(table), known.lengths, torch.tensor(missing), count)
        known.neighbours.update({(count, word): row for word, row in zip(missing, nearest, strict=True)})
    return torch.stack([known.neighbours[count, word] for word in wanted]).long()


def _reader(table: nn.Module) -> Callable[[Int[Tensor, "*rows"]], Float[Tensor, "*rows features"]]:
    """Rows as the table returns them: some scale their weights. The module, which may have hooks, is not called."""

    def rows_of(ids: Int[Tensor, "*rows"]) -> Float[Tensor, "*rows features"]:
        with torch.no_grad():
            rows: Tensor = table.forward(ids.to(_weight(table).device))
        return rows.float()

    return rows_of


def _known(table: nn.Module) -> _Known:
    """The stored neighbours and anchors of the table's current version, which training or editing changes."""
    weight = _weight(table)
    edits = 0 if weight.is_inference() else weight._version
    version = (weight.data_ptr(), edits, weight.dtype, weight.detach().float().sum().item())
    if table not in _KNOWN or _KNOWN[table].version != version:
        _KNOWN[table] = _Known(version, squared_lengths(_reader(table), len(weight)))
    return _KNOWN[table]


def _weight(table: nn.Module) -> Tensor:
    weight: Tensor = table.weight  # type: ignore[assignment]
    return weight
