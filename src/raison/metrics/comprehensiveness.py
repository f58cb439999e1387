"""Comprehensiveness: does the probability fall when the top units are removed?"""

from dataclasses import dataclass
from typing import ClassVar

from raison.core.metric import Evidence, KeepRows, Metric
from raison.core.results.explanation import Explanation
from raison.numerics.measures.ranking import PROFILES, Profile, Share, top_keeps


@dataclass(frozen=True)
class Comprehensiveness(Metric):
    """p(full text) - p(text without its top units), for the explained class.

    Comp(k) = F_y(x) - F_y(x without the top k % of units), ERASER eq. 1; AML A.5, RPI A.3. In -1..1, higher is better.
    The units are deleted by default; `removal` "in_place" masks them instead. `share` is k as a fraction; `profile`
    says how k % of n units is rounded (see raison.numerics.measures.ranking.PROFILES).

    Cost: 1 evaluation in addition to the full text.
    """

    share: Share = 0.2
    profile: Profile = "printed"
    removal: str = "delete"
    reference: ClassVar[str] = "deyoung2020eraser"
    higher_is_better: ClassVar[bool] = True

    def keeps(self, explanation: Explanation) -> dict[str, KeepRows]:
        count = PROFILES[self.profile].count(len(explanation.units), self.share)
        return {self.removal: top_keeps(explanation.order(), [0, count], keep_top=False)}

    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        full, without = evidence.probabilities(self.keeps(explanation)[self.removal], self.removal)
        return float(full - without)
