"""Leave-one-out correlation: do the scores rank units as removing each alone does?"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.stats import kendalltau

from raison.core.metric import IN_PLACE, Evidence, KeepRows, Metric
from raison.core.results.explanation import Explanation
from raison.numerics.measures.agreement import relative


@dataclass(frozen=True)
class LeaveOneOutCorrelation(Metric):
    """Kendall's tau-b between the scores and the decreases of p(class) when each unit alone is removed.

    tau_b(scores, d) with d_i = F_y(x) - F_y(x without unit i), after Jain and Wallace 2019. In -1..1, higher is better;
    0 if there is no order to compare (a single unit, equal scores or equal decreases). The paper compares attention
    weights, which have no sign, with the total variation distance of the outputs; here the decrease is signed, as
    scores are. Each unit is masked in place by default, by the explanation's own removal unless that deletes; the paper
    deletes it.

    Cost: n evaluations in addition to the full text.
    """

    removal: str = IN_PLACE
    reference: ClassVar[str] = "jain2019attention"
    higher_is_better: ClassVar[bool] = True

    def keeps(self, explanation: Explanation) -> dict[str, KeepRows]:
        units = len(explanation.units)
        return {self.removal: np.concatenate([np.ones((1, units), dtype=bool), ~np.eye(units, dtype=bool)])}

    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        full, *without = evidence.probabilities(self.keeps(explanation)[self.removal], self.removal)
        scores = relative(np.array(explanation.scores, dtype=float))
        falls = relative(full - np.array(without))
        # Tau-b is 0/0 where one side has a single value.
        if np.ptp(scores) == 0 or np.ptp(falls) == 0:
            return 0.0
        return float(kendalltau(scores, falls, variant="b").statistic)
