"""The trainer's view of a model that learns to explain itself: texts by their numbers, steps and scores."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor, nn

from raison.core.capabilities.passes import Passes
from raison.core.inputs.encoding import Encoding
from raison.core.registry import name_of
from raison.models.adapters.classifier import Classifier
from raison.numerics.measures.class_scores import ClassScores, class_scores
from raison.training.self_explaining.criterion import Criterion
from raison.training.self_explaining.reading import BatchStep, Labelled, SelfExplaining
from raison.training.self_explaining.simulation import Simulation

TOGETHER, ACCURACY, LOSS = "criteria", "accuracy", "loss "


class TaughtTexts(nn.Module):
    """A model that explains itself with the texts of a run: those for training and those for validation.

    A student's weights are part of the module's state, but not of its parameters.
    """

    def __init__(
        self, network: SelfExplaining, train: Labelled, judged: Labelled, simulation: Simulation | None = None
    ) -> None:
        super().__init__()
        self.network = network
        self.simulation = simulation
        self._train, self._judged = train, judged
        self.states = False
        """Whether steps read hidden states."""

    def step(self, rows: list[int]) -> BatchStep:
        """One pass over some of the training texts."""
        return BatchStep(self.network, self._train.select(rows), self.simulation, self.states)

    def scores(self, criteria: Sequence[Criterion], batch_size: int) -> dict[str, float]:
        """On the validation texts: the mean score of the criteria that have one, each one's score and loss, and the
        accuracy.

        In batches of a fixed order and size, on which the scores of criteria that compare texts depend.
        """
        scores: dict[str, list[float]] = defaultdict(list)
        right: list[bool] = []
        for start in range(0, len(self._judged.encoding), batch_size):
            rows = list(range(start, min(start + batch_size, len(self._judged.encoding))))
            step = BatchStep(self.network, self._judged.select(rows), self.simulation, self.states)
            right += (step.predicted == step.labels).all(-1).tolist()
            for criterion in criteria:
                if len(rows) >= criterion.fewest:
                    scores[name_of(criterion)] += criterion.score(step)
                    scores[LOSS + name_of(criterion)].append(float(criterion.loss(step)))
        means = {name: float(np.mean(values)) if values else float("nan") for name, values in scores.items()}
        named = [
            means[name] for criterion in criteria if not math.isnan(means.get(name := name_of(criterion), math.nan))
        ]
        return {TOGETHER: float(np.mean(named)) if named else math.nan, ACCURACY: float(np.mean(right))} | means


@dataclass(frozen=True, slots=True)
class TaskStep:
    """A batch for a model that is trained on the task alone."""

    encoding: Encoding
    labels: Int[Tensor, "batch parts"]
    decisions: Float[Tensor, "batch parts choices"]


class TaskTexts(nn.Module):
    """A model with the texts that it is fine-tuned on; its attention is not read."""

    def __init__(self, model: Classifier, train: Labelled) -> None:
        super().__init__()
        self.core = model.core
        self._model, self._train = model, train

    def step(self, rows: list[int]) -> TaskStep:
        """One pass over some of the texts."""
        texts = self._train.select(rows)
        decisions = self._model.ask(Passes).decisions(texts.encoding)
        return TaskStep(texts.encoding, texts.labels.to(self._model.device), decisions)


def accuracy(model: Classifier, texts: Labelled) -> float:
    """Share of texts whose parts are all predicted as labelled."""
    return float((model.ask(Passes).predicted(texts.encoding) == texts.labels).all(-1).double().mean())


def scores_of(model: Classifier, texts: Labelled) -> ClassScores | None:
    """How well the classes are predicted; None for a model that finds answers, whose positions are not classes."""
    if model.head.in_place:
        return None
    predicted = model.ask(Passes).predicted(texts.encoding)[:, 0].tolist()
    return class_scores(predicted, texts.labels[:, 0].tolist(), len(model.classes))


def curves(scores: Sequence[Mapping[str, float]], steps: Sequence[int], seconds: float) -> dict[str, object]:
    """The curves of a run for its card: losses and scores by name, one number per evaluation.

    `steps` are those of the evaluations, `seconds` the duration of the run. A missing score (too few texts for pairs)
    is null, because JSON has no NaN.
    """
    names = list(scores[0]) if scores else []
    plain = {name: [round(s[name], 5) if math.isfinite(s[name]) else None for s in scores] for name in names}
    return {
        "steps": list(steps),
        "losses": {name.removeprefix(LOSS): values for name, values in plain.items() if name.startswith(LOSS)},
        "scores": {name: values for name, values in plain.items() if not name.startswith(LOSS)},
        "seconds": round(seconds, 2),
    }
