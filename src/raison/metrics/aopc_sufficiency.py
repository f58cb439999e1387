"""Sufficiency averaged over several shares of the units."""

from dataclasses import dataclass
from typing import ClassVar

from raison.core.metric import Evidence, KeepRows, Metric
from raison.core.results.explanation import Explanation
from raison.numerics.measures.ranking import PROFILES, SHARES, Profile, Shares, top_keeps


@dataclass(frozen=True)
class AopcSufficiency(Metric):
    """Mean of Suff(k) over k in {1, 5, 10, 20, 50} %.

    AOPC-S = 1/|B| sum_{k in B} Suff(k), as printed in the AML (A.5) and RPI (A.3) papers. ERASER's paper and the AML
    and RPI code divide by |B| + 1 (profiles "unirex" and "aml_code"). In -1..1, lower is better.

    Cost: at most one evaluation per share in addition to the full text.
    """

    shares: Shares = SHARES
    profile: Profile = "printed"
    removal: str = "delete"
    reference: ClassVar[str] = "deyoung2020eraser"
    higher_is_better: ClassVar[bool] = False

    def keeps(self, explanation: Explanation) -> dict[str, KeepRows]:
        units = len(explanation.units)
        rule = PROFILES[self.profile]
        counts = [rule.count(units, share) for share in self.shares]
        return {self.removal: top_keeps(explanation.order(), [units, *counts], keep_top=True)}

    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        rule = PROFILES[self.profile]
        keeps = self.keeps(explanation)[self.removal]
        full, *alone = evidence.probabilities(keeps, self.removal)
        scores = []
        for kept, value in zip(keeps[1:].sum(axis=1), alone, strict=True):
            nothing_kept = kept == 0 and rule.empty_sufficiency is not None
            scores.append(rule.empty_sufficiency if nothing_kept else float(full - value))
        return rule.average([score for score in scores if score is not None])
