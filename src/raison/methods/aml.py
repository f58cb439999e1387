"""Attributive Masking Learning."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capability import Capability
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.model import LanguageModel
from raison.core.note_names import TRAINED_FOR
from raison.core.problem import Problem
from raison.core.settings.fields import Setting
from raison.core.targets.outputs import PROBABILITIES, Outputs
from raison.core.targets.target import probabilities
from raison.masking.explainer import KIND, find
from raison.masking.soft import Prediction
from raison.models.derived.explainers import files_of


@dataclass(frozen=True)
class Aml(Method):
    """The share of each unit that a trained attribution model keeps when it masks what is irrelevant to the prediction.

    a = G(x, y) in [0, 1] (Barkan et al. 2024, AML, equation 1). G was trained (`raison train aml`) to minimise lambda_p
    L_p(F(x'), y) + lambda_a L_a(a) + lambda_inv L_inv(F(x''), y) (equations 4 to 7), with x' = a x + (1 - a) m, x'' the
    same with 1 - a in place of a, and m the embedding that replaces a masked token. y are the model's probabilities. If
    a class other than the predicted one is explained, y is that class alone.

    - `checkpoint`: the explainer's folder. None takes the one next to the model's files (some demo models include one),
      or the one that was trained for the model's name.
    - `metric`: one of the metrics that the explainer was trained for; None takes the first.
    - `steps`: 0 is pAML, the trained G as it is. More is fAML: a copy of G is fine-tuned on the text for `steps` steps,
      with fixed label embeddings. Without selection the last map is returned; a metric (`select=`) chooses the best of
      all `steps` + 1.
    - `learning_rate`: None is the rate that the explainer was trained with.

    Returns (batch, units), between 0 and 1; the scores have no unit and no fixed sum. A unit of several tokens of G has
    their highest score (or mean, as trained).

    steps = 0: one forward pass of G. Otherwise: `steps` times a forward and a backward pass of G and of two masked
    texts, and one more forward pass of G. F's prediction of the whole text is not counted, because every method has it.
    Many texts are fine-tuned at once, each with its own low-rank parameters.

    Guarantees nothing about single texts: G is as good as its training. Scores show what keeps the class, never what
    speaks against it. Compare the best of several maps by a metric with the best of as many random maps
    (`random(draws=11)` for 10 steps).

    Differences from the paper: G may add low-rank matrices to its backbone instead of training all of it, and it starts
    from the fine-tuned model's own encoder where the paper names a pretrained one. Differences from its published code:
    no factor 1/c in the encoded prediction; every class's embedding is trained; the map after the last step is
    returned; the rate falls to zero within the steps.

    Reference: barkan2024aml; hu2022lora.
    """

    checkpoint: Annotated[str | None, Setting(outside=True)] = None
    metric: str | None = None
    steps: Annotated[int, Setting(least=0, words="a whole number of at least 0 (0: one pass)")] = 0
    learning_rate: Annotated[float | None, Setting(above=0)] = None

    reference: ClassVar[str] = "barkan2024aml"
    needs: ClassVar[frozenset[type[Capability]]] = frozenset({WordEmbeddings})
    outputs: ClassVar[frozenset[Outputs]] = PROBABILITIES
    properties: ClassVar[frozenset[Property]] = frozenset({Property.UNSIGNED, Property.CANDIDATES, Property.TRAINED})
    passes: ClassVar[str] = "3 steps + 1 forward + 3 steps backward"

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
        prediction = Prediction(_wanted(problem), problem.target.index)
        tuning = explainer.tuning(self.steps, self.learning_rate)
        maps = explainer.maps(problem.model, problem.encoding, prediction, tuning, rngs)
        problem.note(TRAINED_FOR, [explainer.metric for _ in texts])
        for text in texts:
            once = 1 + explainer.masked_texts()
            problem.ledger.evaluations[text] += 1 + self.steps * once
            problem.ledger.gradients[text] += self.steps * once
        return maps

    def cost(self, units: int) -> Cost:
        return Cost(forwards=1 + 3 * self.steps, backwards=3 * self.steps)


def _wanted(problem: Problem) -> Float[Tensor, "batch classes"]:
    """The model's probabilities if the predicted class is explained, otherwise the explained class alone."""
    logits = problem.predictions()
    alone = torch.nn.functional.one_hot(problem.target.index, logits.shape[1]).to(logits)
    predicted = (logits.argmax(-1) == problem.target.index)[:, None]
    return torch.where(predicted, probabilities(logits, problem.model.multi_label), alone).float()
