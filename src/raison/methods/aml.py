"""Attributive Masking Learning."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.errors import InputError
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.model import Capability, LanguageModel
from raison.core.problem import Problem
from raison.core.target import probabilities
from raison.masking.explainer import KIND, find
from raison.models.derived.explainers import files_of


@dataclass(frozen=True)
class Aml(Method):
    """How much of each unit a trained attribution model keeps when it masks all that the prediction does not need.

    a = G(x, y) in [0, 1] (Barkan et al. 2024, AML, equation 1), where G was trained (`raison train aml`) to minimise
    lambda_p L_p(F(x'), y) + lambda_a L_a(a) + lambda_inv L_inv(F(x''), y) (equations 4 to 7) with x' = a x + (1 - a) m,
    x'' the same with 1 - a, and m an embedding that stands for a masked token. y are the model's probabilities, or,
    where another class than the predicted one is explained, that class alone.

    `checkpoint` is the explainer's folder; None takes the one beside the model's files (some demo models carry theirs),
    or that which was trained for its name. `metric` is one of those that it was trained for; None the first.
    `steps` 0 is pAML: the trained G as it is. More are fAML: a copy of G is fine-tuned on the text, so many steps, with
    the label embeddings fixed. Without a choice the last map counts; a metric (`select=`) chooses the best of all
    `steps` + 1. `learning_rate` None is the one that the explainer was trained with.

    Returns (batch, units), between 0 and 1, of no sum and no unit. A unit of several tokens of G has their greatest
    score (or mean, as trained).

    steps = 0: one forward pass, of G. Otherwise `steps` times a forward and a backward pass of G and of two masked
    texts, and one more forward pass of G. F's prediction of the text itself is known to every method. Many texts are
    fine-tuned at once, each with low-rank parameters of its own.

    Guarantees nothing about single texts: G is as good as its training, and scores show what keeps the class, never
    what speaks against it. The best of several maps by a metric is to be compared with the best of as many random
    maps by it (`random(draws=11)` for 10 steps).

    Differences from the paper: G may add low-rank matrices to its backbone instead of training all of it. From its
    published code: no factor 1/c in the encoded prediction, every class's embedding is trained, the map after the last
    step counts, and the rate falls to zero within the steps. G starts from the fine-tuned model's own encoder where the
    paper names a pretrained one.

    Reference: barkan2024aml; hu2022lora.
    """

    checkpoint: str | None = None
    metric: str | None = None
    steps: int = 0
    learning_rate: float | None = None

    reference: ClassVar[str] = "barkan2024aml"
    needs: ClassVar[frozenset[Capability]] = frozenset({Capability.EMBEDDINGS, Capability.CLASSES})
    properties: ClassVar[frozenset[Property]] = frozenset({Property.UNSIGNED, Property.CANDIDATES, Property.TRAINED})
    passes: ClassVar[str] = "3 steps + 1 forward + 3 steps backward"

    def __post_init__(self) -> None:
        if type(self.steps) is not int or self.steps < 0:
            raise InputError(f"steps of aml cannot be {self.steps!r}: give a whole number from 0 on (0: one pass).")
        if self.learning_rate is not None and not self.learning_rate > 0:
            raise InputError(f"learning_rate of aml cannot be {self.learning_rate!r}: give a number above 0.")

    def files(self, model: LanguageModel) -> tuple[Path, ...]:
        return files_of(model.name, self.checkpoint, KIND)

    def check(self, model: LanguageModel) -> None:
        find(model, self.checkpoint, self.metric)

    @property
    def maps(self) -> int:
        return self.steps + 1

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        return self.unselected(self.candidates(problem, rngs))

    def unselected(self, maps: Float[Tensor, "maps batch scored"]) -> Float[Tensor, "batch scored"]:
        return maps[-1]

    def candidates(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "maps batch scored"]:
        explainer = find(problem.model, self.checkpoint, self.metric)
        texts = range(len(problem.encoding))
        prediction = (_wanted(problem), problem.target.index)
        maps = explainer.maps(problem.model, problem.encoding, prediction, (self.steps, self.learning_rate), rngs)
        problem.note("trained_for", [explainer.metric for _ in texts])
        for text in texts:
            once = 1 + explainer.masked_texts()
            problem.ledger.evaluations[text] += 1 + self.steps * once
            problem.ledger.gradients[text] += self.steps * once
        return maps

    def cost(self, units: int) -> Cost:
        return Cost(forwards=1 + 3 * self.steps, backwards=3 * self.steps)


def _wanted(problem: Problem) -> Float[Tensor, "batch classes"]:
    """The model's probabilities where the predicted class is explained, else the explained class alone."""
    logits = problem.predictions()
    alone = torch.nn.functional.one_hot(problem.target.index, logits.shape[1]).to(logits)
    predicted = (logits.argmax(-1) == problem.target.index)[:, None]
    return torch.where(predicted, probabilities(logits, problem.model.multi_label), alone).float()
