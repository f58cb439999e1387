"""Texts as vectors, and the similarity of two."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import normalize

from raison.core.dims import Logits
from raison.core.targets.choices import Measure, Pooled
from raison.models.passes.outputs.heads import ACTIVATIONS, Head, NetworkOutput, Parts
from raison.models.passes.outputs.multi_input_outputs import Join, ReadOutput
from raison.models.passes.token_batch import TokenBatch

CLASSES = ("similarity",)


@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """A linear layer after the pooling, and its activation. `added`: the layer's input is added to its output."""

    weight: Float[Tensor, "out width"]
    bias: Float[Tensor, " out"] | None
    activation: str
    added: bool = False
    residual: Float[Tensor, "out width"] | None = None

    def __call__(self, vectors: ReadOutput) -> Float[Tensor, "rows out"]:
        weight, bias = self.weight.to(vectors), None if self.bias is None else self.bias.to(vectors)
        activated: Tensor = ACTIVATIONS[self.activation]()(nn.functional.linear(vectors, weight, bias))
        if not self.added:
            return activated
        residual = vectors if self.residual is None else nn.functional.linear(vectors, self.residual.to(vectors))
        return activated + residual


@dataclass(frozen=True, slots=True)
class Normalized:
    """Vectors of length 1."""

    def __call__(self, vectors: ReadOutput) -> ReadOutput:
        return normalize(vectors, dim=-1)


@dataclass(frozen=True, slots=True, eq=False)
class TextVectors:
    """How a model's last hidden states become the vector of a text: a pooling, then the steps in order."""

    pooled: Pooled
    steps: tuple[Dense | Normalized, ...] = ()

    def of(self, states: Float[Tensor, "rows tokens hidden"], lengths: Int[Tensor, " rows"]) -> ReadOutput:
        """The vectors of texts, in at least single precision."""
        states = states.to(torch.promote_types(states.dtype, torch.float32))
        lengths = lengths.to(states.device)
        vectors = self._pool(states, lengths)
        for step in self.steps:
            vectors = step(vectors)
        return vectors

    def _pool(self, states: Tensor, lengths: Tensor) -> Tensor:
        if self.pooled == "cls":
            return states[:, 0]
        if self.pooled == "lasttoken":
            return states[torch.arange(len(states), device=states.device), lengths - 1]
        inside = (torch.arange(states.shape[1], device=states.device) < lengths[:, None])[:, :, None]
        if self.pooled == "max":
            return states.masked_fill(~inside, -torch.inf).amax(1)
        return (states * inside).sum(1) / lengths[:, None]

    @property
    def facts(self) -> list[object]:
        """The settings that determine the vectors besides the model, as JSON values."""
        facts: list[object] = [self.pooled]
        for step in self.steps:
            if isinstance(step, Normalized):
                facts.append("normalized")
                continue
            held = [part.double() for part in (step.weight, step.bias, step.residual) if part is not None]
            sums = [[list(part.shape), float(part.sum()), float(part.square().sum())] for part in held]
            facts.append([step.activation, step.added, sums])
        return facts


@dataclass(frozen=True, slots=True, eq=False)
class VectorHead(Head):
    """Makes a vector of a text. The explained number is the similarity of two vectors, which a join computes."""

    vectors: TextVectors

    def parts(self, outputs: NetworkOutput, batch: TokenBatch) -> Parts:
        states: Tensor = outputs["last_hidden_state"] if isinstance(outputs, Mapping) else outputs[0]
        return self.vectors.of(states, batch.lengths)[:, None]

    def logits(self, parts: Parts, batch: TokenBatch) -> Logits:
        return parts[:, 0]

    def predicted(self, parts: Parts) -> Int[Tensor, "rows parts"]:
        return parts.argmax(-1)


@dataclass(frozen=True, slots=True)
class VectorSimilarity(Join):
    """The cosine or the dot product of two texts' vectors."""

    measure: Measure
    reads: ClassVar[int] = 2

    def number(self, outputs: Sequence[ReadOutput]) -> Float[Tensor, "rows 1"]:
        return self.of(*outputs)

    def of(self, first: ReadOutput, second: ReadOutput) -> Float[Tensor, "rows 1"]:
        """The similarity of each row's two vectors."""
        if self.measure == "cosine":
            first, second = normalize(first, dim=-1), normalize(second, dim=-1)
        return (first * second).sum(-1, keepdim=True)


@dataclass(frozen=True, slots=True)
class Nearer(Join):
    """By how much the first vector is more similar to the second than to the third."""

    similarity: VectorSimilarity
    reads: ClassVar[int] = 3

    def number(self, outputs: Sequence[ReadOutput]) -> Float[Tensor, "rows 1"]:
        query, first, second = outputs
        return self.similarity.of(query, first) - self.similarity.of(query, second)
