"""Sequences of token ids that a model runs together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from raison.core.inputs.encoding import Encoding, PlaceReading


@dataclass(frozen=True, slots=True)
class TokenBatch:
    """Sequences to run together. `mask` is None if nothing is padded, so that attention needs no mask.

    The first `prefix` tokens are the same in all rows and constant: a causal model may take them from its cache.
    `context` (see Encoding.context) and `spans` are for models that answer with a span of the text; None for others.
    `reading` is for predictions at places of the text (`spans`), several of which may lie in one row: `reads` are then
    the rows that they are read from, and there are logits for each of them.
    """

    ids: Int[Tensor, "rows tokens"]
    type_ids: Int[Tensor, "rows tokens"]
    lengths: Int[Tensor, " rows"]
    prefix: int = 0
    context: Bool[Tensor, "rows tokens"] | None = None
    spans: Int[Tensor, "reads places"] | None = None
    reading: PlaceReading | None = None
    reads: Int[Tensor, " reads"] | None = None

    def select(self, rows: Sequence[int]) -> "TokenBatch":
        """A subset of the sequences, without unnecessary padding."""
        lengths = self.lengths[rows]
        width = int(lengths.max())
        context = None if self.context is None else self.context[rows, :width]
        batch = TokenBatch(self.ids[rows, :width], self.type_ids[rows, :width], lengths, self.prefix, context)
        if self.spans is None:
            return batch
        places: Sequence[int] | Tensor = rows
        reads = None
        if self.reads is not None:
            places = self.reads_of(rows)
            numbers = {row: number for number, row in enumerate(rows)}
            reads = torch.tensor([numbers[row] for row in self.reads[places].tolist()], dtype=torch.long)
        reading = None if self.reading is None else self.reading.select(places)
        return replace(batch, spans=self.spans[places], reading=reading, reads=reads)

    def reads_of(self, rows: Sequence[int]) -> Int[Tensor, " reads"]:
        """The numbers of the logits that are read from some rows, in their order."""
        if self.reads is None:
            return torch.as_tensor(list(rows))
        return torch.isin(self.reads, torch.as_tensor(list(rows))).nonzero()[:, 0]

    @property
    def mask(self) -> Bool[Tensor, "rows tokens"] | None:
        width = self.ids.shape[1]
        if int(self.lengths.min()) == width:
            return None
        return torch.arange(width)[None, :] < self.lengths[:, None]


def placed(batch: TokenBatch, encoding: Encoding, texts: Sequence[int] | Tensor) -> TokenBatch:
    """The batch with where predictions are read in the texts of its rows."""
    if encoding.spans is None:
        return batch
    if encoding.reading is not None:
        return replace(batch, spans=encoding.spans[texts], reading=encoding.reading.select(texts))
    return replace(batch, context=encoding.context[texts, : batch.ids.shape[1]], spans=encoding.spans[texts])


def extended(batch: TokenBatch, branch: tuple[int, ...]) -> TokenBatch:
    """Every sequence with the tokens of a branch appended."""
    if not branch:
        return batch
    steps = batch.lengths[:, None] + torch.arange(len(branch))
    ids = torch.nn.functional.pad(batch.ids, (0, len(branch))).scatter(
        1, steps, batch.ids.new_tensor([branch] * len(steps))
    )
    types = torch.nn.functional.pad(batch.type_ids, (0, len(branch)))
    return TokenBatch(ids, types, batch.lengths + len(branch), batch.prefix)


def padded_together(batches: Sequence[TokenBatch]) -> TokenBatch:
    """The rows of several batches as one, padded on the right: their ids, type ids and lengths."""
    width = max(batch.ids.shape[1] for batch in batches)
    pads = [(0, width - batch.ids.shape[1]) for batch in batches]
    ids = torch.cat([torch.nn.functional.pad(batch.ids, pad) for batch, pad in zip(batches, pads, strict=True)])
    types = torch.cat([torch.nn.functional.pad(batch.type_ids, pad) for batch, pad in zip(batches, pads, strict=True)])
    return TokenBatch(ids, types, torch.cat([batch.lengths for batch in batches]))
