"""A classifier's forward passes: from texts to logits."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from raison.core.capabilities.passes import Passes, Result
from raison.core.dims import Embeddings, Logits
from raison.core.inputs.encoding import Encoding
from raison.models.passes import batching
from raison.models.passes.batching import TokenBudget
from raison.models.passes.last_row import LastRow
from raison.models.passes.network import Network
from raison.models.passes.outputs.heads import Head
from raison.models.passes.outputs.multi_input_outputs import Reads, RunRead
from raison.models.passes.removal import Remover
from raison.models.passes.token_batch import TokenBatch, placed
from raison.models.passes.unpadded import BatchRead, apart
from raison.models.stack.nonfinite import nonfinite_logits


class ForwardPasses(Passes):
    """Passes through one network, in batches under one budget. Logits are in at least single precision."""

    def __init__(
        self, network: Network, head: Head, budget: TokenBudget, name: str, reads: Reads | None = None
    ) -> None:
        """`name` is the model's name in errors. `reads`: rows consist of several texts that are read separately."""
        self.network = network
        self.head = head
        self.budget = budget
        self.reads = reads
        self._last_row = LastRow(network.core)
        self._name = name

    @property
    def single(self) -> "ForwardPasses":
        """The same passes over one read, for texts that are read separately."""
        if self.reads is None:
            return self
        return ForwardPasses(self.network, self.head, self.budget, self._name)

    def logits(self, encoding: Encoding, embeds: Embeddings | None = None) -> Logits:
        return self.forward(self.batch_of(encoding), embeds)

    def decisions(self, encoding: Encoding, embeds: Embeddings | None = None) -> Float[Tensor, "batch parts choices"]:
        batch = self.batch_of(encoding)
        if self.reads is not None:
            return self.forward(batch, embeds)[:, None]
        parts = self._unpadded(self._parts, batch, embeds)
        if batch.context is None:
            return self._checked(batch, parts.flatten(1)).reshape(parts.shape)
        # Excluded positions are infinite on purpose.
        open_ = batch.context.to(parts.device)[:, None]
        self._checked(batch, torch.where(open_, parts, 0).flatten(1))
        return parts

    def chosen(self, decisions: Float[Tensor, "batch parts choices"]) -> Int[Tensor, "batch parts"]:
        return self.head.predicted(decisions)

    def batches(self, encoding: Encoding) -> list[list[int]]:
        return batching.groups(encoding.lengths, self.budget.tokens, self.budget.unpadded)

    def in_batches(self, encoding: Encoding, run: Callable[[list[int]], Result]) -> Iterator[tuple[list[int], Result]]:
        return batching.run_grouped(self.budget, encoding.lengths, run)

    def batch_of(self, encoding: Encoding, prefix: int = 0) -> TokenBatch:
        """All texts as one batch; the first `prefix` tokens may come from a prompt's stored states."""
        batch = TokenBatch(encoding.input_ids, encoding.type_ids, encoding.attention_mask.sum(1), prefix)
        if self.head.in_context and encoding.spans is None:
            return replace(batch, context=encoding.context)
        return placed(batch, encoding, range(len(encoding)))

    def predict(self, batch: TokenBatch, embeds: Embeddings | None = None) -> Logits:
        """One differentiable pass; the output is not checked."""
        return self._joined(batch, embeds, self._read)

    def forward(self, batch: TokenBatch, embeds: Embeddings | None = None) -> Logits:
        """One differentiable pass over one batch. Raises NonFiniteError."""
        return self._checked(batch, self.predict(batch, embeds))

    def brief(self, batch: TokenBatch, embeds: Embeddings | None = None) -> Logits:
        """`forward` for passes without hooks: an encoder's last layer is computed only where the head reads it."""
        return self._checked(batch, self._joined(batch, embeds, self._narrow))

    def masked_logits(
        self, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], remover: Remover
    ) -> list[Float[Tensor, "_masks classes"]]:
        """See LanguageModel.masked_logits. Every masked text is a separate row."""
        with torch.no_grad():
            return batching.masked_logits(encoding, keeps, remover, self._evaluated)

    def finite(self, encoding: Encoding, logits: list[Tensor]) -> list[Tensor]:
        """The logits of each text. Raises NonFiniteError."""
        for text, text_logits in enumerate(logits):
            if not torch.isfinite(text_logits).all():
                self._raise_nonfinite(self.batch_of(encoding.select([text])))
        return logits

    def _read(self, batch: TokenBatch, embeds: Embeddings | None) -> Logits:
        return self._unpadded(self._logits, batch, embeds)

    def _unpadded(self, read: BatchRead, batch: TokenBatch, embeds: Embeddings | None) -> Tensor:
        """What `read` gives for a batch; rows of different lengths apart, if the model's output depends on padding."""
        with self.network.quiet():
            ends = None if self.network.is_watched else self.network.ends(batch)
            if ends is not None:
                return apart(partial(self._unpadded, read), batch, embeds, ends)
            if not self.network.reads_padding(batch) or self.network.is_watched:
                return read(batch, embeds)
            # From now on, rows of different lengths do not meet in a batch.
            self.budget.unpadded = True
            return apart(read, batch, embeds, batch.lengths)

    def _parts(self, batch: TokenBatch, embeds: Embeddings | None) -> Tensor:
        with self.head.reading(batch):
            return self.head.parts(self.network.run(batch, embeds), batch)

    def _logits(self, batch: TokenBatch, embeds: Embeddings | None) -> Logits:
        with self.head.reading(batch):
            return self.head.logits(self.head.parts(self.network.run(batch, embeds), batch), batch)

    def _narrow(self, batch: TokenBatch, embeds: Embeddings | None) -> Logits:
        if self.network.readout is not None or self.head.in_place:
            return self._read(batch, embeds)
        return self._last_row.predict(self._read, batch, embeds)

    def _joined(self, batch: TokenBatch, embeds: Embeddings | None, read: RunRead) -> Logits:
        return read(batch, embeds) if self.reads is None else self.reads.logits(batch, embeds, read)

    def _evaluated(self, table: TokenBatch) -> Logits:
        """Logits of any number of rows, on the CPU, without gradients. Equal texts that are read separately are read
        once."""
        if self.reads is None:
            return batching.run_table(table, self.budget, lambda batch: self.brief(batch).cpu())

        def run(rows: TokenBatch) -> Tensor:
            return batching.run_table(rows, self.budget, lambda batch: self._narrow(batch, None).cpu())

        return self._checked(table, self.reads.evaluated(table, run))

    def _checked(self, batch: TokenBatch, logits: Logits) -> Logits:
        finite = torch.isfinite(logits.detach()).all(-1)
        if not finite.all():
            wrong = int(finite.logical_not().nonzero()[0, 0])
            self._raise_nonfinite(batch.select([wrong if batch.reads is None else int(batch.reads[wrong])]))
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def _raise_nonfinite(self, single: TokenBatch) -> None:
        network = self.network
        with torch.no_grad(), network.quiet():
            text = str(network.tokenizer.decode(single.ids[0]))
            raise nonfinite_logits(self._name, text, network.core, lambda: self.predict(single))
