"""Layers as parts."""

from abc import abstractmethod
from typing import ClassVar

from raison.core.capability import Capability
from raison.core.inputs.encoding import Encoding
from raison.core.internals.anatomy import HeadWeights, LayerWeights, Trace


class Anatomy(Capability):
    """Its layers can be decomposed into each token's contribution: their weights, and what they compute for a text."""

    name: ClassVar[str] = "decomposition"
    absence: ClassVar[str] = "cannot be decomposed"
    way_out: ClassVar[str] = "Use attention_rollout or integrated_gradients."

    layers: int

    @abstractmethod
    def traces(self, encoding: Encoding) -> list[Trace]:
        """What the layers computed for each text, or for each read of it, in one pass of all without gradients."""

    @abstractmethod
    def weights(self, layer: int) -> LayerWeights:
        """The weights of a layer, counted from 0; converted again in each call if the model stores them in another
        form."""

    @abstractmethod
    def head(self) -> HeadWeights:
        """The part after the last layer. Raises UnsupportedError if the logits are not computed by such a chain of
        stages."""
