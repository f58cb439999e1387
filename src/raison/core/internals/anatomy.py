"""The parts of a model's layers and what they computed, as tensors for decompositions."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

Activation = Callable[[Tensor], Tensor]
"""A function of single numbers that is zero at zero: GELU, SiLU, ReLU, tanh."""


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """x -> weight x + bias."""

    weight: Float[Tensor, "outputs inputs"]
    bias: Float[Tensor, " outputs"] | None = None

    def __call__(self, x: Float[Tensor, "... inputs"]) -> Float[Tensor, "... outputs"]:
        return torch.nn.functional.linear(x, self.weight, self.bias)


@dataclass(frozen=True, slots=True, eq=False)
class Norm:
    """x -> gain (x - mean x) / sigma + bias, with sigma^2 = mean (x - mean x)^2 + epsilon.

    An RMS norm is not centred: no mean is subtracted anywhere.
    """

    gain: Float[Tensor, " hidden"]
    bias: Float[Tensor, " hidden"] | None
    epsilon: float
    centred: bool

    def __call__(self, x: Float[Tensor, "... hidden"]) -> Float[Tensor, "... hidden"]:
        plain = self.linear(x, self.sigma(x))
        return plain if self.bias is None else plain + self.bias

    def linear(self, x: Float[Tensor, "... hidden"], sigma: Float[Tensor, "... 1"]) -> Float[Tensor, "... hidden"]:
        """The linear map that the norm is once sigma is known, without the bias."""
        return self._centred(x) * (self.gain / sigma)

    def sigma(self, x: Float[Tensor, "... hidden"]) -> Float[Tensor, "... 1"]:
        """The divisor of x."""
        return (self._centred(x).square().mean(-1, keepdim=True) + self.epsilon).sqrt()

    def _centred(self, x: Float[Tensor, "... hidden"]) -> Float[Tensor, "... hidden"]:
        return x - x.mean(-1, keepdim=True) if self.centred else x


@dataclass(frozen=True, slots=True, eq=False)
class FeedForward:
    """x -> outer(activation(inner(x))), or with a gate outer(activation(gate(x)) inner(x))."""

    inner: Affine
    outer: Affine
    activation: Activation
    gate: Affine | None = None

    def __call__(self, x: Float[Tensor, "... hidden"]) -> Float[Tensor, "... hidden"]:
        if self.gate is None:
            return self.outer(self.activation(self.inner(x)))
        return self.outer(self.activation(self.gate(x)) * self.inner(x))


@dataclass(frozen=True, slots=True, eq=False)
class LayerWeights:
    """One layer. `value` has one block of outputs per head of the queries: shared heads are repeated."""

    norm_first: bool
    """Whether each norm comes before its sublayer, inside the residual branch, or after the sum."""
    attention_norm: Norm | None
    value: Affine
    output: Affine
    mlp_norm: Norm
    feed_forward: FeedForward


Stage = Affine | Norm | Activation


@dataclass(frozen=True, slots=True, eq=False)
class HeadWeights:
    """What follows the last layer: a norm of every row, the mean of rows by their shares, and stages up to the logits.

    The last stage is affine, with one output per class.
    """

    norm: Norm | None
    stages: tuple[Stage, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """What a pass over one text, or one read of it, computed: for its own tokens only, in at least single precision."""

    states: tuple[Float[Tensor, "tokens hidden"], ...]
    """The input of each layer, and the output of the last one (before a norm that follows it)."""
    attention: tuple[Float[Tensor, "heads query key"], ...]
    rows: Float[Tensor, " tokens"]
    """How much each token's last state counts in the prediction, summing to 1 over all reads of the text."""
    text: int
    """The text's number in the batch."""
    tokens: Int[Tensor, " tokens"]
    """Where the tokens are in the text's row."""
