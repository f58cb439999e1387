"""Gini: how unequally does the explanation spread importance over the units?"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from raison.core.metric import Evidence, Metric
from raison.core.results.explanation import Explanation


@dataclass(frozen=True)
class Gini(Metric):
    """Gini index of the scores' magnitudes: 0 if all are equal, (n-1)/n if one unit has everything.

    sum_i sum_j |a_i - a_j| / (2 n sum_i a_i) with a_i = |s_i|, the sparseness of Chalasani et al. 2020. It is
    descriptive: neither end is better. NaN if all scores are 0.

    Cost: no evaluation.
    """

    reference: ClassVar[str] = "chalasani2020concise"
    higher_is_better: ClassVar[bool | None] = None
    ordered: ClassVar[bool] = False

    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        magnitudes = np.sort(np.abs(np.array(explanation.scores, dtype=float)))
        if not magnitudes.any():
            return math.nan
        # In ascending order the i-th is added in i - 1 differences and taken off in n - i: 2 i - n - 1 in balance.
        units = len(magnitudes)
        balance = 2 * np.arange(1, units + 1) - units - 1
        return float(balance @ magnitudes / (units * magnitudes.sum()))
