"""Infidelity: do the scores of removed units sum to the effect of removing them?"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from jaxtyping import Float

from raison.core.draws import generator_for
from raison.core.metric import Evidence, KeepRows, Metric, Need
from raison.core.results.explanation import Explanation
from raison.core.settings.fields import Setting


@dataclass(frozen=True)
class Infidelity(Metric):
    """E_I[(b sum_{i in I} s_i - (v(x) - v(x without I)))^2] over random sets I of removed units.

    The infidelity of Yeh et al. 2019 (their definition 2.1) with the perturbation "remove the units I"; v is the
    explained value (probability, logit, ...) and the removal that of the explanation itself. The size of I is uniform
    on 1..n, and I is uniform among the sets of that size, so that small and large removals count alike. The draws
    depend only on the text and its units: all methods are judged on the same sets, in one go.

    `scaled` (the default) takes b = E[(I.s) d] / E[(I.s)^2], with d the change of the value: the factor with the least
    error, as the authors do to compare methods whose scale has no meaning (attention, ranks, gradients). A negative
    factor, which would reward scores of the wrong sign, counts as 0, unlike in their code. Without `scaled`, b = 1: the
    definition itself, for methods that claim to predict v. At least 0, unbounded, lower is better. It is in squared
    units of v, so compare explanations of one kind of value. With b = 0 it is E[d^2], the value of an explanation that
    is zero throughout.

    Cost: up to `samples` evaluations in addition to the full text, shared by all methods.
    """

    samples: Annotated[int, Setting(least=1)] = 64
    scaled: bool = True
    reference: ClassVar[str] = "yeh2019fidelity"
    higher_is_better: ClassVar[bool] = False
    needs: ClassVar[frozenset[Need]] = frozenset({Need.VALUES})
    ordered: ClassVar[bool] = False

    def keeps(self, explanation: Explanation) -> dict[str, KeepRows]:
        full = np.ones((1, len(explanation.units)), dtype=bool)
        return {explanation.removal: np.concatenate([full, ~_removed(explanation, self.samples)])}

    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        keeps = self.keeps(explanation)[explanation.removal]
        full, *without = evidence.values(keeps, explanation.removal)
        changes = full - np.array(without)
        predicted = ~keeps[1:] @ np.array(explanation.scores, dtype=np.float64)
        factor = _factor(predicted, changes) if self.scaled else 1.0
        return float(np.square(factor * predicted - changes).mean())


def _factor(predicted: Float[np.ndarray, " masks"], changes: Float[np.ndarray, " masks"]) -> float:
    """The factor, not negative, with which the predictions have the least squared error; 0 for scores of zero."""
    largest = np.abs(predicted).max()
    if largest == 0:
        return 0.0
    # Of size one before squaring: tiny scores would vanish, huge ones overflow.
    unit = predicted / largest
    return float(max(0.0, (unit @ changes) / (unit @ unit)) / largest)


def _removed(explanation: Explanation, samples: int) -> KeepRows:
    """Which units go, by draw; more samples continue the same sequence of draws."""
    spans = [(unit.start, unit.end, unit.segment) for unit in explanation.units]
    rng = generator_for(explanation.text, spans)
    removed = np.zeros((samples, len(spans)), dtype=bool)
    for row in removed:
        row[rng.permutation(len(spans))[: rng.integers(1, len(spans) + 1)]] = True
    return removed
