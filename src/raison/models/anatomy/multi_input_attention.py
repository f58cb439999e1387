"""Attention and layers of texts that are read separately, such as the two whose similarity is explained."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import torch

from raison.core.capabilities.attention_layers import AttentionLayers, Block, Positions, Recorded
from raison.core.capabilities.decomposition import Anatomy
from raison.core.inputs.encoding import Encoding
from raison.core.internals.anatomy import HeadWeights, LayerWeights, Trace
from raison.models.anatomy.tapped_attention import TappedAttention
from raison.models.passes.forward import ForwardPasses
from raison.models.passes.outputs.multi_input_outputs import Reads


class SeveralReads(AttentionLayers):
    """The attention of texts that are read separately: positions of one read do not attend to those of another.

    The model's number depends on all reads, so their prediction rows get equal shares.
    """

    def __init__(self, passes: ForwardPasses, reads: Reads, attention: TappedAttention) -> None:
        """`attention` is that of a single read."""
        self._passes = passes
        self._reads = reads
        self._attention = attention

    def positions(self, encoding: Encoding) -> Positions:
        apart = self._reads.apart(self._passes.batch_of(encoding))
        # The rows that predict are the same in every read.
        rows = [self._attention.prediction_rows(apart.encoding(encoding, number)) for number in range(apart.count)]
        return Positions(apart.present, apart.tokens, torch.cat(rows, 1) / apart.count)

    @contextmanager
    def recorded(self) -> Iterator[Recorded]:
        recorded = Recorded()
        with self._attention.tap() as seen:
            yield recorded
        count = self._reads.join.reads
        recorded.blocks = [Block(seen.probabilities[layer], reads=count) for layer in sorted(seen.probabilities)]


class AnatomyOfReads(Anatomy):
    """A trace of every read of a text; the reads have equal shares in the prediction."""

    def __init__(self, single: Anatomy, passes: ForwardPasses, reads: Reads) -> None:
        """`single` takes apart the pass over one read."""
        self._single = single
        self._passes = passes
        self._reads = reads
        self.layers = single.layers

    def traces(self, encoding: Encoding) -> list[Trace]:
        apart, traces = self._reads.apart(self._passes.batch_of(encoding)), []
        for number in range(apart.count):
            for trace in self._single.traces(apart.encoding(encoding, number)):
                places = apart.places[number * len(encoding) + trace.text]
                traces.append(replace(trace, rows=trace.rows / apart.count, tokens=places[: len(trace.rows)]))
        return traces

    def weights(self, layer: int) -> LayerWeights:
        return self._single.weights(layer)

    def head(self) -> HeadWeights:
        return self._single.head()
