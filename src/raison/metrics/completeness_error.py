"""Completeness error: do the scores sum to the effect of all units together?"""

from dataclasses import dataclass
from typing import ClassVar

from raison.core.metric import Evidence, Metric
from raison.core.results.explanation import Explanation

FLOOR = 1e-6
"""The smallest difference by which the relative error divides."""


@dataclass(frozen=True)
class CompletenessError(Metric):
    """|sum of the scores - (value of the full text - value with every unit removed)|.

    |sum_i s_i - (v(x) - v(empty))|, the gap to the completeness axiom of Sundararajan et al. 2017, with the value
    (probability, logit, ...) and the removal of the explanation itself. `relative` divides it by |v(x) - v(empty)|, or
    by 1e-6 if that is smaller. At least 0, unbounded, lower is better. It depends on the sum and not on the order, and
    unlike the other metrics on the scale: compare explanations of one kind of value, by methods that claim
    completeness. A method whose own baseline differs from the removal is measured against the removal.

    Cost: no evaluation.
    """

    relative: bool = False
    reference: ClassVar[str] = "sundararajan2017axiomatic"
    higher_is_better: ClassVar[bool] = False
    ordered: ClassVar[bool] = False

    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        gap = abs(explanation.completeness_gap)
        return gap / max(abs(explanation.value_full - explanation.value_empty), FLOOR) if self.relative else gap
