"""Attention that can be replaced."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

from raison.core.capability import Capability
from raison.core.inputs.encoding import Encoding
from raison.core.internals.attention import AttentionSite


class ReplaceableAttention(Capability):
    """Its attention can be replaced, and gradients reach it."""

    name: ClassVar[str] = "attention_paths"
    absence: ClassVar[str] = "does not let its attention be replaced"
    way_out: ClassVar[str] = "Use integrated_gradients, or attention_rollout."

    @abstractmethod
    def attention_sites(self, encoding: Encoding, layers: Callable[[int], Sequence[int]]) -> list[AttentionSite]:
        """Where the attention to one text can be replaced, in the given layers; see AttentionSite.

        `layers` is called with the number of layers and returns those to use, counted from 0. Costs one forward pass.
        """
