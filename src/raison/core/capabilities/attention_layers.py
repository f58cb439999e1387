"""Attention as matrices between positions, layer by layer."""

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from raison.core.capability import Capability
from raison.core.dims import Attention
from raison.core.inputs.encoding import Encoding


@dataclass(frozen=True, slots=True, eq=False)
class Positions:
    """Where states are: one position per token, or, in an encoder-decoder, the encoder's and then the decoder's.

    If a text is read in several passes, its positions are those of the first read, then of the next ones, each as wide
    as the widest.
    """

    present: Bool[Tensor, "batch positions"]
    """All but padding."""
    tokens: Int[Tensor, "batch positions"]
    """The token at each position; -1: not a token of the text."""
    rows: Float[Tensor, "batch positions"]
    """The weight of each position's last state in the prediction, summing to 1."""
    border: int = 0
    """The first position of a decoder that reads an encoder; 0: there is one stack."""

    def of_texts(self, texts: Sequence[int]) -> "Positions":
        """The positions of some texts, as wide as before."""
        rows = list(texts)
        return Positions(self.present[rows], self.tokens[rows], self.rows[rows], self.border)

    def to_tokens(self, scores: Float[Tensor, "batch positions"]) -> Float[Tensor, "batch tokens"]:
        """A token's score is the sum over its positions."""
        width = int(self.tokens.max()) + 1
        summed = scores.new_zeros(len(scores), width + 1)
        # Positions of no token go into the last column.
        return summed.scatter_add(1, self.tokens.to(scores.device) % (width + 1), scores)[:, :width]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The attention of some positions to some, in one layer: of the encoder, of the decoder, or from one to the other.

    `query` and `key` are the first positions of both. Where every text is read in several `reads`, the rows are the
    first reads of all texts, then the second ones: each attends to itself alone.
    """

    probabilities: Attention
    query: int = 0
    key: int = 0
    reads: int = 1

    def placed(self, part: Float[Tensor, "batch *heads query key"], width: int) -> Tensor:
        """A matrix made from the probabilities, in its place in a matrix over all positions that is zero elsewhere."""
        rows, columns = part.shape[-2:]
        whole = []
        for number, read in enumerate(part.chunk(self.reads)):
            query, key = self.query + number * rows, self.key + number * columns
            sides = (key, width - key - columns, query, width - query - rows)
            whole.append(torch.nn.functional.pad(read, sides))
        return torch.stack(whole).sum(0) if self.reads > 1 else whole[0]


@dataclass(slots=True)
class Recorded:
    """The attention of the latest pass in the order of computation, filled when the context ends."""

    blocks: list[Block] = field(default_factory=list)


class AttentionLayers(Capability):
    """Its attention can be followed from position to position."""

    name: ClassVar[str] = "attention_layers"
    absence: ClassVar[str] = "does not show its attention"
    way_out: ClassVar[str] = "Use a method that needs no attention, such as occlusion or integrated_gradients."

    @abstractmethod
    def positions(self, encoding: Encoding) -> Positions:
        """The positions of a batch. The first call can cost one forward and one backward pass."""

    @abstractmethod
    def recorded(self) -> AbstractContextManager[Recorded]:
        """Record the attention of the pass inside the context; records stay in the graph."""
