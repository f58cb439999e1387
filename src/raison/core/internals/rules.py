"""Backward rules that differ from the gradient."""

from dataclasses import dataclass
from typing import Literal

from raison.core.dims import Embeddings


@dataclass(frozen=True, slots=True)
class Relevance:
    """The gradient with some parts held constant or shared, as in layer-wise relevance propagation.

    The divisor of every normalisation layer is constant. Forward values are the model's own.
    """

    attention: Literal["constant", "shared"]
    """Attention weights are constants, or both products of attention give half to each of their factors."""
    activations: Literal["gradient", "identity"]
    """An activation f(z) has its own slope, or f(z) / z: all of its relevance goes to its input."""
    gates: Literal["gradient", "constant", "shared"]
    """A product of two states: its gradient, none for the factor that an activation gave, or half for each factor."""


@dataclass(frozen=True, slots=True, eq=False)
class FiniteDifference:
    """Finite differences between a text and `starts`, word embeddings as wide as the text's, in place of slopes."""

    starts: Embeddings


Rules = Relevance | FiniteDifference
