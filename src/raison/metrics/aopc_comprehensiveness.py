"""Comprehensiveness averaged over several shares of the units."""

from dataclasses import dataclass
from typing import ClassVar

from raison.core.metric import Evidence, KeepRows, Metric
from raison.core.results.explanation import Explanation
from raison.numerics.measures.ranking import PROFILES, SHARES, Profile, Shares, top_keeps


@dataclass(frozen=True)
class AopcComprehensiveness(Metric):
    """Mean of Comp(k) over k in {1, 5, 10, 20, 50} %.

    AOPC-C = 1/|B| sum_{k in B} Comp(k), as printed in the AML (A.5) and RPI (A.3) papers. ERASER's paper and the AML
    and RPI code divide by |B| + 1 (profiles "unirex" and "aml_code"). In -1..1, higher is better.

    Cost: at most one evaluation per share in addition to the full text.
    """

    shares: Shares = SHARES
    profile: Profile = "printed"
    removal: str = "delete"
    reference: ClassVar[str] = "deyoung2020eraser"
    higher_is_better: ClassVar[bool] = True

    def keeps(self, explanation: Explanation) -> dict[str, KeepRows]:
        rule = PROFILES[self.profile]
        counts = [rule.count(len(explanation.units), share) for share in self.shares]
        return {self.removal: top_keeps(explanation.order(), [0, *counts], keep_top=False)}

    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        full, *without = evidence.probabilities(self.keeps(explanation)[self.removal], self.removal)
        return PROFILES[self.profile].average([float(full - value) for value in without])
