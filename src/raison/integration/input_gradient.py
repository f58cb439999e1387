"""Methods whose scores come from the gradient at the input: in batches, or differentiable for given embeddings."""

from abc import abstractmethod
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capability import Capability
from raison.core.dims import Embeddings
from raison.core.method import Cost, Method, Rngs
from raison.core.note_names import CAUTION
from raison.core.problem import Problem
from raison.integration.differentiable_gradients import gradients_at

Features = Literal["norm", "sum"]
"""How the features of an embedding become one score."""
ROUNDING = 1e-5
"""Share of the largest norm below which sums are errors of rounding."""
ONLY_ROUNDING = (
    "the sums over the features are zero but for rounding, so that neither order nor signs mean anything: a model that "
    "first subtracts an embedding's mean does not react where all features grow together; use features='norm'"
)


class InputGradient(Method):
    """A method whose scores follow from a token's word embedding and its gradient. The settings include `features`."""

    needs: ClassVar[frozenset[type[Capability]]] = frozenset({WordEmbeddings})
    passes: ClassVar[str] = "1 forward + 1 backward"

    @property
    @abstractmethod
    def features(self) -> Features:
        """How a token's features become one score."""

    @abstractmethod
    def of_features(
        self, embeds: Float[Tensor, "*rows hidden"], gradients: Float[Tensor, "*rows hidden"]
    ) -> Float[Tensor, "*rows hidden"]:
        """For each feature, the value that is summed or whose norm is taken."""

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
            features = self.of_features(embeds[text, : len(gradient)].cpu().double(), gradient.double())
            scores[text, : len(gradient)] = self._reduced(features)
            if scores[text].abs().max() < ROUNDING * features.norm(dim=-1).max():
                problem.ledger.notes[text][CAUTION] = ONLY_ROUNDING
        return scores

    def scores_at(self, problem: Problem, embeds: Embeddings) -> Float[Tensor, "batch scored"]:
        """See Method.scores_at. A norm has no derivative where it is zero; zero is used there."""
        return self._reduced(self.of_features(embeds.double(), gradients_at(problem, embeds).double()))

    def cost(self, units: int) -> Cost:
        return Cost(forwards=1, backwards=1)

    def _reduced(self, features: Float[Tensor, "*rows hidden"]) -> Float[Tensor, "*rows"]:
        return features.sum(-1) if self.features == "sum" else features.norm(dim=-1)
