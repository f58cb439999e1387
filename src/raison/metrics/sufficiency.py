"""Sufficiency: do the top units alone carry the prediction?"""

from dataclasses import dataclass
from typing import ClassVar

from raison.core.metric import Evidence, KeepRows, Metric
from raison.core.results.explanation import Explanation
from raison.numerics.measures.ranking import PROFILES, Profile, Share, top_keeps


@dataclass(frozen=True)
class Sufficiency(Metric):
    """p(full text) - p(only its top units), for the explained class.

    Suff(k) = F_y(x) - F_y(only the top k % of units of x), ERASER eq. 2; AML A.5, RPI A.3. In -1..1, lower is better.
    The other units are deleted by default; `removal` "in_place" masks them instead. `share` is k as a fraction;
    `profile` says how k % of n units is rounded and what no unit at all scores (see
    raison.numerics.measures.ranking.PROFILES).

    Cost: 1 evaluation in addition to the full text.
    """

    share: Share = 0.2
    profile: Profile = "printed"
    removal: str = "delete"
    reference: ClassVar[str] = "deyoung2020eraser"
    higher_is_better: ClassVar[bool] = False

    def keeps(self, explanation: Explanation) -> dict[str, KeepRows]:
        units = len(explanation.units)
        count = PROFILES[self.profile].count(units, self.share)
        return {self.removal: top_keeps(explanation.order(), [units, count], keep_top=True)}

    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        rule = PROFILES[self.profile]
        if rule.empty_sufficiency is not None and rule.count(len(explanation.units), self.share) == 0:
            return rule.empty_sufficiency
        full, alone = evidence.probabilities(self.keeps(explanation)[self.removal], self.removal)
        return float(full - alone)
