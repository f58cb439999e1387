"""Word embeddings in place of ids, and gradients that reach them."""

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager

from raison.core.capabilities.embeddings import Path, Shift, WordEmbeddings
from raison.core.dims import Embeddings, Logits, Points
from raison.core.inputs.encoding import Encoding
from raison.core.targets.target import Target
from raison.models.gradients.embedding_shift import shifted_tables
from raison.models.gradients.path_gradients import PathGradients, Sums
from raison.models.passes.forward import ForwardPasses
from raison.models.passes.removal import Removals


class TableEmbeddings(WordEmbeddings):
    """Given embeddings in place of those from a network's embedding table."""

    def __init__(self, passes: ForwardPasses, removals: Removals, gradients: PathGradients) -> None:
        self._passes = passes
        self._network = passes.network
        self._removals = removals
        self._gradients = gradients

    def embed(self, encoding: Encoding) -> Embeddings:
        return self._network.embed(encoding)

    def removed(self, encoding: Encoding, removal: str) -> Encoding:
        return self._removals.everything(encoding, removal)

    def logits_at(self, encoding: Encoding, embeds: Embeddings) -> Logits:
        return self._passes.forward(self._passes.batch_of(encoding, encoding.prefix_length), embeds)

    def path_gradients(
        self, encoding: Encoding, path: Path, positions: Points, weights: Points, target: Target
    ) -> Sums:
        return self._gradients.along(encoding, path, positions, weights, target)

    @contextmanager
    def shifted(self, shift: Shift) -> Iterator[None]:
        """An encoder-decoder reads the text with two tables of equal rows: both move. Contexts add up when nested.

        Embeddings that are given to `logits` are used unchanged, because `embed` has already moved them.
        """
        packed = self._network.packed
        stored = contextlib.nullcontext() if packed is None else packed.uncached()
        with stored, shifted_tables(self._network.tables, shift, self._network.tokenizer.all_special_ids):
            yield
