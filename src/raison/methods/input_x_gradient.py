"""Input times gradient."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from raison.core.method import Property
from raison.integration.input_gradient import Features, InputGradient


@dataclass(frozen=True)
class InputXGradient(InputGradient):
    """The first-order estimate of the effect of setting a token's word embedding to zero.

    score_t = e_t . d v / d e_t (the baseline called gradient times input in Shrikumar et al. 2016 and 2017), with v the
    target and e_t the token's word embedding. Returns (batch, tokens), signed, in units of the target.

    1 forward and 1 backward pass.

    `features` says how the products of an embedding's features become one score: their "sum", or their L2 "norm", which
    has no sign and is what Progressive Inference compares with (its appendix B.2).

    Guarantees no sum: only for a model that is linear in its embeddings do the scores sum to the value minus that of
    zero embeddings. A token that the model does not read scores zero.

    Differences from the paper: it multiplies features; here the products are reduced over the embedding's features.

    Reference: shrikumar2016not; shrikumar2017learning.
    """

    features: Features = "sum"

    reference: ClassVar[str] = "shrikumar2016not"
    properties: ClassVar[frozenset[Property]] = frozenset(
        {Property.TOKENWISE, Property.SIGNED, Property.DUMMY, Property.DIFFERENTIABLE}
    )

    def of_features(
        self, embeds: Float[Tensor, "*rows hidden"], gradients: Float[Tensor, "*rows hidden"]
    ) -> Float[Tensor, "*rows hidden"]:
        return embeds * gradients
