"""Max-sensitivity: how much do the scores change under small changes of the word embeddings?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from raison.core.capabilities.embeddings import Shift
from raison.core.metric import Evidence, Metric, Need
from raison.core.results.explanation import Explanation
from raison.core.settings.fields import Setting


@dataclass(frozen=True)
class MaxSensitivity(Metric):
    """Largest relative change of the scores over `samples` small random shifts of the word embeddings.

    max_k |s(x shifted by k) - s(x)|_2 / |s(x)|_2: the max-sensitivity of Yeh et al. 2019. Its maximum is estimated from
    random draws and divided by the norm of the scores, as in captum, so that methods of different scales are
    comparable. The explanation is computed again with the same method, seed and target, after moving the model's
    embeddings by vectors from the ball of radius `radius` x the mean norm of an embedding. In the paper, noise is
    independent at every position. Here equal words move together and special tokens (including padding and mask) stay:
    the shift is a property of the model, so it also affects methods that only ask for predictions. At least 0,
    unbounded, lower is better; NaN if all scores are 0. A method that ignores the model is perfectly stable: read it
    together with faithfulness.

    Cost: `samples` explanations.
    """

    radius: Annotated[
        float, Setting(above=0, words="a share of the mean norm of an embedding, above 0, such as 0.02")
    ] = 0.02
    samples: Annotated[int, Setting(least=1)] = 10
    reference: ClassVar[str] = "yeh2019fidelity"
    higher_is_better: ClassVar[bool] = False
    needs: ClassVar[frozenset[Need]] = frozenset({Need.EMBEDDINGS})
    ordered: ClassVar[bool] = False

    def shifts(self, explanation: Explanation) -> Sequence[Shift]:
        return tuple(Shift(self.radius, draw) for draw in range(self.samples))

    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        scores = np.array(explanation.scores, dtype=np.float64)
        norm = np.linalg.norm(scores)
        if norm == 0:
            return float("nan")
        changes = [evidence.shifted_scores(shift) - scores for shift in self.shifts(explanation)]
        return float(np.linalg.norm(changes, axis=1).max() / norm)
