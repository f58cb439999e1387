"""Saliency: the size of the gradient."""

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

Features = Literal["norm", "sum"]


@dataclass(frozen=True)
class Saliency(Method):
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
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({WordEmbeddings})
    properties: ClassVar[frozenset[Property]] = frozenset({Property.TOKENWISE, Property.DIFFERENTIABLE})
    passes: ClassVar[str] = "1 forward + 1 backward"

    def __post_init__(self) -> None:
        if self.features not in get_args(Features):
            raise UnknownNameError("features of saliency", self.features, get_args(Features))

    @property
    def signed(self) -> bool:
        return self.features == "sum"

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
            scores[text, : len(gradient)] = self._reduced(gradient.double())
        return scores

    def scores_at(self, problem: Problem, embeds: Embeddings) -> Float[Tensor, "batch scored"]:
        """See Method.scores_at. A norm has no derivative where the gradient is zero; zero is used there."""
        return self._reduced(gradients_at(problem, embeds).double())

    def cost(self, units: int) -> Cost:
        return Cost(forwards=1, backwards=1)

    def _reduced(self, gradients: Float[Tensor, "*rows hidden"]) -> Float[Tensor, "*rows"]:
        return gradients.norm(dim=-1) if self.features == "norm" else gradients.sum(-1)
