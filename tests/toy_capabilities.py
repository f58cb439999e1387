"""What the toys offer: each capability asks the toy, whose functions subclasses override."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.attention_layers import AttentionLayers, Block, Positions, Recorded
from raison.core.capabilities.embeddings import Path, Shift, WordEmbeddings
from raison.core.capabilities.hidden_states import HiddenStates
from raison.core.capabilities.passes import Passes, Result
from raison.core.capabilities.step_logits import StepLogits
from raison.core.capability import Capability
from raison.core.inputs.encoding import Encoding
from raison.core.targets.target import Target

if TYPE_CHECKING:
    from tests.toys import ToyModel


@dataclass
class ToyTap:
    """What the toy's layers attended to in the last pass."""

    probabilities: dict[int, Tensor] = field(default_factory=dict)


class ToyCapability(Capability):
    """Asks the toy, whose functions subclasses override."""

    def __init__(self, toy: ToyModel) -> None:
        self.toy = toy


class ToyPasses(ToyCapability, Passes):
    """See Passes."""

    def logits(self, encoding: Encoding, embeds: Tensor | None = None) -> Tensor:
        return self.toy.logits(encoding, embeds)

    def batches(self, encoding: Encoding) -> list[list[int]]:
        return [list(range(start, min(start + 3, len(encoding)))) for start in range(0, len(encoding), 3)]

    def in_batches(self, encoding: Encoding, run: Callable[[list[int]], Result]) -> Iterator[tuple[list[int], Result]]:
        return ((rows, run(rows)) for rows in self.batches(encoding))


class ToyEmbeddings(ToyCapability, WordEmbeddings):
    """See WordEmbeddings."""

    def embed(self, encoding: Encoding) -> Tensor:
        return self.toy.embed(encoding)

    def removed(self, encoding: Encoding, removal: str) -> Encoding:
        return self.toy.removed(encoding, removal)

    def logits_at(self, encoding: Encoding, embeds: Tensor) -> Tensor:
        return self.toy.logits(encoding, embeds)

    def path_gradients(
        self, encoding: Encoding, path: Path, positions: Tensor, weights: Tensor, target: Target
    ) -> tuple[list[Tensor], Tensor]:
        return self.toy.path_gradients(encoding, path, positions, weights, target)

    def shifted(self, shift: Shift) -> AbstractContextManager[None]:
        return self.toy.shifted(shift)


class ToyAttention(ToyCapability, ReadableAttention):
    """See ReadableAttention."""

    def tap(self, layers: Sequence[int] | None = None) -> AbstractContextManager[ToyTap]:
        return self.toy.tap(layers)

    def prediction_rows(self, encoding: Encoding) -> Tensor:
        return self.toy.prediction_rows(encoding)


class ToyLayers(ToyCapability, AttentionLayers):
    """See AttentionLayers: one stack."""

    def positions(self, encoding: Encoding) -> Positions:
        tokens = torch.arange(encoding.input_ids.shape[1]).expand(encoding.input_ids.shape)
        return Positions(encoding.attention_mask, tokens, self.toy.prediction_rows(encoding))

    @contextmanager
    def recorded(self) -> Iterator[Recorded]:
        found = Recorded()
        with self.toy.tap() as seen:
            yield found
        found.blocks = [Block(seen.probabilities[layer]) for layer in sorted(seen.probabilities)]


class ToySteps(ToyCapability, StepLogits):
    """See StepLogits."""

    def step_logits(self, encoding: Encoding, keeps: Sequence[Tensor], removal: str) -> list[Tensor]:
        return self.toy.step_logits(encoding, keeps, removal)

    def start_logits(self, encoding: Encoding) -> Tensor:
        return self.toy.start_logits(encoding)


class ToyStates(ToyCapability, HiddenStates):
    """One layer, which doubles the embeddings."""

    def hidden_states(self, encoding: Encoding) -> list[Tensor]:
        return [
            2 * self.toy.table[ids[:length]].float()
            for ids, length in zip(encoding.input_ids, encoding.lengths, strict=True)
        ]


OFFERED = (ToyPasses, ToyEmbeddings, ToyAttention, ToyLayers, ToySteps, ToyStates)
