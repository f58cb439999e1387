"""Input times gradient."""

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capability import Capability
from raison.core.dims import Embeddings
from raison.core.errors import UnknownNameError
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.problem import Problem
from raison.integration.slopes import gradients_at

Features = Literal["sum", "norm"]


@dataclass(frozen=True)
class InputXGradient(Method):
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
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({WordEmbeddings})
    properties: ClassVar[frozenset[Property]] = frozenset(
        {Property.TOKENWISE, Property.SIGNED, Property.DUMMY, Property.DIFFERENTIABLE}
    )
    passes: ClassVar[str] = "1 forward + 1 backward"

    def __post_init__(self) -> None:
        if self.features not in get_args(Features):
            raise UnknownNameError("features of input_x_gradient", self.features, get_args(Features))

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        encoding = problem.encoding
        embeds = problem.model.ask(WordEmbeddings).embed(encoding).detach()
        point = torch.ones(1, dtype=torch.float64)
        # A path of one point, the input itself.
        gradients, _ = problem.path_gradients(
            lambda text, points: embeds[text].expand(len(points), -1, -1), point, point
        )
        scores = torch.zeros(encoding.input_ids.shape, dtype=torch.float64)
        for text, gradient in enumerate(gradients):
            features = embeds[text, : len(gradient)].cpu().double()
            scores[text, : len(gradient)] = self._reduced(features * gradient.double())
        return scores

    def scores_at(self, problem: Problem, embeds: Embeddings) -> Float[Tensor, "batch scored"]:
        """See Method.scores_at."""
        return self._reduced((embeds * gradients_at(problem, embeds)).double())

    def cost(self, units: int) -> Cost:
        return Cost(forwards=1, backwards=1)

    def _reduced(self, products: Float[Tensor, "*rows hidden"]) -> Float[Tensor, "*rows"]:
        return products.sum(-1) if self.features == "sum" else products.norm(dim=-1)
