"""Saliency: the size of the gradient."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from raison.core.method import Property
from raison.integration.input_gradient import Features, InputGradient


@dataclass(frozen=True)
class Saliency(InputGradient):
    """How strongly the target reacts to a small change of a token's word embedding.

    score_t = || d v / d e_t ||_2 (Simonyan et al. 2014, section 3), with v the target and e_t the token's word
    embedding. Returns (batch, tokens), in target per embedding length, never negative.

    1 forward and 1 backward pass.

    `features` says how the gradient's features become one score: their L2 "norm", or their "sum", which is signed and
    says how the target changes when all features of the token grow together. A model that first subtracts an
    embedding's mean (the layer norm of BERT and similar models) does not react to that: its sums are zero except for
    rounding.

    Guarantees no sum over tokens, and a sign only with features="sum". That sign belongs to a direction and not to the
    token: a text's own words do not enter it. A saturated model has small gradients wherever it is certain. A token
    that the model does not read scores zero.

    Differences from the paper: the L2 norm over the embedding's features, as is usual for text, or their sum, instead
    of the largest absolute value over colour channels; any target, not only the class score before the softmax. The
    papers that name vanilla gradients leave the reduction open.

    Reference: simonyan2014deep.
    """

    features: Features = "norm"

    reference: ClassVar[str] = "simonyan2014deep"
    properties: ClassVar[frozenset[Property]] = frozenset({Property.TOKENWISE, Property.DIFFERENTIABLE})

    @property
    def signed(self) -> bool:
        return self.features == "sum"

    def of_features(
        self, embeds: Float[Tensor, "*rows hidden"], gradients: Float[Tensor, "*rows hidden"]
    ) -> Float[Tensor, "*rows hidden"]:
        return gradients
