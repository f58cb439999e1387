"""Attention that can be read."""

from abc import abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import ClassVar, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from raison.core.capability import Capability
from raison.core.dims import Attention, HeadStates
from raison.core.inputs.encoding import Encoding


@runtime_checkable
class TapRecord(Protocol):
    """The steps that an attention tap recorded, by layer, in a forward pass inside its context; only the requested
    ones."""

    query: dict[int, HeadStates]
    key: dict[int, HeadStates]
    scores: dict[int, Attention]
    probabilities: dict[int, Attention]


class ReadableAttention(Capability):
    """Its attention can be read."""

    name: ClassVar[str] = "attention"
    absence: ClassVar[str] = "does not show its attention"
    way_out: ClassVar[str] = "Use a method that needs no attention, such as occlusion or integrated_gradients."

    @abstractmethod
    def tap(
        self, layers: Sequence[int] | None = None, record: Sequence[str] = ("probabilities",)
    ) -> AbstractContextManager[TapRecord]:
        """Record steps of the attention of the given layers (all by default) during the passes inside the context.

        Steps are query, key, scores (before the softmax) and probabilities; records stay in the graph.
        """

    @abstractmethod
    def prediction_rows(self, encoding: Encoding) -> Float[Tensor, "batch tokens"]:
        """The weight of each token's last hidden state in the prediction, summing to 1.

        1 for the first token of a CLS model or the last token of a decoder; equal shares if the model pools a mean.
        """
