"""Rows that a model reads in several passes: texts that it reads apart, and whose outputs are then compared."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from raison.core.dims import Embeddings, Logits
from raison.core.inputs.encoding import KINDS
from raison.models.passes.batching import TokenBatch

Output = Float[Tensor, "rows width"]
Read = Callable[[TokenBatch, Embeddings | None], Output]


class Join(ABC):
    """How the outputs of a row's reads become one number."""

    reads: ClassVar[int]
    """How many reads a row has."""

    @abstractmethod
    def number(self, outputs: Sequence[Output]) -> Float[Tensor, "rows 1"]:
        """The number of each row, differentiable, from the outputs of each read."""


@dataclass(frozen=True, slots=True)
class Difference(Join):
    """By how much the number of one read is higher than that of another."""

    reads: ClassVar[int] = 2

    def number(self, outputs: Sequence[Output]) -> Float[Tensor, "rows 1"]:
        first, second = (output.to(torch.promote_types(output.dtype, torch.float32)) for output in outputs)
        return first - second


@dataclass(frozen=True, slots=True)
class Reads:
    """Rows of several reads. `placeholder` is what remains of a read whose tokens are all deleted."""

    join: Join
    placeholder: int

    def logits(self, batch: TokenBatch, embeds: Embeddings | None, read: Read) -> Logits:
        """Differentiable: one pass for each read, of all rows."""
        cuts = [self._cut(batch, number) for number in range(self.join.reads)]
        return self.join.number([read(own, _at(embeds, places)) for own, places in cuts])

    def evaluated(self, batch: TokenBatch, run: Callable[[TokenBatch], Output]) -> Logits:
        """The same without gradients: what several rows have in common is read once."""
        rows: dict[bytes, tuple[Tensor, Tensor]] = {}
        numbers: dict[bytes, int] = {}
        index = []
        for number in range(self.join.reads):
            own, _ = self._cut(batch, number)
            for ids, types, length in zip(own.ids, own.type_ids, own.lengths.tolist(), strict=True):
                row = ids[:length], types[:length]
                key = torch.cat(row).numpy().tobytes()
                rows.setdefault(key, row)
                index.append(numbers.setdefault(key, len(numbers)))
        outputs = run(_table(list(rows.values())))
        return self.join.number(list(outputs[torch.tensor(index)].split(len(batch.ids))))

    def _cut(self, batch: TokenBatch, number: int) -> tuple[TokenBatch, Tensor]:
        """One read of every row, and where its tokens are in the row."""
        width = batch.ids.shape[1]
        owners = (batch.type_ids // KINDS).masked_fill(torch.arange(width) >= batch.lengths[:, None], self.join.reads)
        lengths = (owners == number).sum(1)
        places = (owners < number).sum(1)[:, None] + torch.arange(max(1, int(lengths.max())))
        places = places.clamp_max(width - 1)
        ids = batch.ids.gather(1, places)
        # What follows a read in its row is another one, which must not be taken for its own (T5 looks for its end).
        ids = ids.masked_fill(torch.arange(ids.shape[1]) >= lengths[:, None], 0)
        ids[lengths == 0, 0] = self.placeholder
        types = batch.type_ids.gather(1, places) % KINDS
        return replace(batch, ids=ids, type_ids=types, lengths=lengths.clamp_min(1)), places


def _at(embeds: Embeddings | None, places: Int[Tensor, "rows own"]) -> Float[Tensor, "rows own width"] | None:
    if embeds is None:
        return None
    index = places.to(embeds.device)[:, :, None].expand(-1, -1, embeds.shape[2])
    return embeds.gather(1, index)


def _table(rows: Sequence[tuple[Tensor, Tensor]]) -> TokenBatch:
    ids, types = (pad_sequence([row[column] for row in rows], batch_first=True) for column in (0, 1))
    return TokenBatch(ids, types, torch.tensor([len(own) for own, _ in rows]))
