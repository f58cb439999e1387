"""Rows that a model reads in several passes: texts that it reads separately, whose outputs are then compared."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from raison.core.dims import Embeddings, Logits
from raison.core.inputs.encoding import KINDS, Encoding
from raison.models.passes.token_batch import TokenBatch

ReadOutput = Float[Tensor, "rows width"]
RunRead = Callable[[TokenBatch, Embeddings | None], ReadOutput]


class Join(ABC):
    """How the outputs of a row's reads become one number."""

    reads: ClassVar[int]
    """Number of reads per row."""

    @abstractmethod
    def number(self, outputs: Sequence[ReadOutput]) -> Float[Tensor, "rows 1"]:
        """The number of each row, differentiable, from the outputs of each read."""


@dataclass(frozen=True, slots=True)
class ReadDifference(Join):
    """By how much the number of one read is higher than that of another."""

    reads: ClassVar[int] = 2

    def number(self, outputs: Sequence[ReadOutput]) -> Float[Tensor, "rows 1"]:
        first, second = (output.to(torch.promote_types(output.dtype, torch.float32)) for output in outputs)
        return first - second


@dataclass(frozen=True, slots=True, eq=False)
class Apart:
    """The first reads of all rows, then the second ones, as a batch; `places` are their tokens in the rows."""

    batch: TokenBatch
    places: Int[Tensor, "reads own"]
    count: int

    @property
    def present(self) -> Bool[Tensor, "rows positions"]:
        """Where the tokens are, with all reads of a row side by side, each as wide as the widest."""
        width = torch.arange(self.places.shape[1])
        return self._beside(width < self.batch.lengths[:, None])

    @property
    def tokens(self) -> Int[Tensor, "rows positions"]:
        """The row's token at each of these positions; -1 for padding."""
        return self._beside(self.places).masked_fill(~self.present, -1)

    def of_reads(self, embeds: Embeddings | None) -> Float[Tensor, "reads own hidden"] | None:
        """The rows' embeddings as those of the reads."""
        if embeds is None:
            return None
        index = self.places.to(embeds.device)[:, :, None].expand(-1, -1, embeds.shape[2])
        return embeds.repeat(self.count, 1, 1).gather(1, index)

    def encoding(self, whole: Encoding, number: int) -> Encoding:
        """One read of every text as a separate batch; texts and units stay those of the whole."""
        rows = slice(number * len(whole), (number + 1) * len(whole))
        places, lengths = self.places[rows], self.batch.lengths[rows]
        inside = torch.arange(places.shape[1]) < lengths[:, None]
        return replace(
            whole,
            input_ids=self.batch.ids[rows],
            type_ids=self.batch.type_ids[rows],
            attention_mask=inside,
            offsets=whole.offsets.gather(1, places[:, :, None].expand(-1, -1, 2)),
            unit_ids=whole.unit_ids.gather(1, places).masked_fill(~inside, -1),
        )

    def _beside(self, reads: Tensor) -> Tensor:
        return torch.cat(reads.chunk(self.count), 1)


@dataclass(frozen=True, slots=True)
class Reads:
    """Rows of several reads. `placeholder` is what remains of a read whose tokens are all deleted."""

    join: Join
    placeholder: int

    def logits(self, batch: TokenBatch, embeds: Embeddings | None, read: RunRead) -> Logits:
        """Differentiable: all reads of all rows in one pass."""
        apart = self.apart(batch)
        return self.join.number(read(apart.batch, apart.of_reads(embeds)).split(len(batch.ids)))

    def apart(self, batch: TokenBatch) -> "Apart":
        """The reads of all rows."""
        cuts = [self._cut(batch, number) for number in range(self.join.reads)]
        width = max(places.shape[1] for _, places in cuts)
        ids, types, places = (
            torch.cat([torch.nn.functional.pad(part, (0, width - part.shape[1])) for part in parts])
            for parts in zip(*((part.ids, part.type_ids, places) for part, places in cuts), strict=True)
        )
        lengths = torch.cat([part.lengths for part, _ in cuts])
        return Apart(replace(batch, ids=ids, type_ids=types, lengths=lengths), places, self.join.reads)

    def evaluated(self, batch: TokenBatch, run: Callable[[TokenBatch], ReadOutput]) -> Logits:
        """The same without gradients: reads that several rows have in common are read once."""
        rows: dict[bytes, tuple[Tensor, Tensor]] = {}
        numbers: dict[bytes, int] = {}
        index = []
        for number in range(self.join.reads):
            part, _ = self._cut(batch, number)
            for ids, types, length in zip(part.ids, part.type_ids, part.lengths.tolist(), strict=True):
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
        # The tokens after a read in its row belong to another one, and must not count as its own (T5 looks for its
        # end).
        ids = ids.masked_fill(torch.arange(ids.shape[1]) >= lengths[:, None], 0)
        ids[lengths == 0, 0] = self.placeholder
        types = batch.type_ids.gather(1, places) % KINDS
        return replace(batch, ids=ids, type_ids=types, lengths=lengths.clamp_min(1)), places


def _table(rows: Sequence[tuple[Tensor, Tensor]]) -> TokenBatch:
    ids, types = (pad_sequence([row[column] for row in rows], batch_first=True) for column in (0, 1))
    return TokenBatch(ids, types, torch.tensor([len(row_ids) for row_ids, _ in rows]))
