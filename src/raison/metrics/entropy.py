"""Entropy: how evenly does the explanation spread importance over the units?"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from raison.core.metric import Evidence, Metric
from raison.core.results.explanation import Explanation


@dataclass(frozen=True)
class Entropy(Metric):
    """Shannon entropy of the units' shares of the total magnitude, divided by its maximum.

    H = - sum_i p_i log p_i / log n with p_i = |s_i| / sum_j |s_j|: the complexity of Bhatt et al. 2020, divided by that
    of n equal magnitudes so that long and short texts are comparable; without `normalised` it is in nats. In 0..1 (in
    0..log n); 0 if one unit has everything, also if it is the only one. It is descriptive: neither end is better. NaN
    if all scores are 0.

    Cost: no evaluation.
    """

    normalised: bool = True
    reference: ClassVar[str] = "bhatt2020evaluating"
    higher_is_better: ClassVar[bool | None] = None
    ordered: ClassVar[bool] = False

    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        magnitudes = np.abs(np.array(explanation.scores, dtype=float))
        if not magnitudes.any():
            return math.nan
        shares = magnitudes / magnitudes.sum()
        # The limit of p log p at 0 is 0.
        shares = shares[shares > 0]
        entropy = -float((shares * np.log(shares)).sum())
        return entropy / math.log(len(magnitudes)) if self.normalised and len(magnitudes) > 1 else entropy
