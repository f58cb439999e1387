"""Log-odds: how much less likely is the class when the top units are masked?"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from raison.core.metric import IN_PLACE, Evidence, KeepRows, Metric, Need
from raison.core.results.explanation import Explanation
from raison.numerics.measures.ranking import PROFILES, Profile, Share, top_keeps


@dataclass(frozen=True)
class LogOdds(Metric):
    """log p(text with its top units masked) - log p(full text), for the explained class.

    LO(k) = log (F_y(x with the top k % masked) / F_y(x)), Shrikumar 2017 as used in AML A.5 and RPI A.3. Despite the
    name it is a ratio of probabilities, not of odds. Unbounded, lower is better. Masked means the removal that the
    explanation was made with, if it keeps the length: the mask token by default. Decoders have no mask token that was
    trained, and default to three dots; the papers use the unknown token: state removal="unk" for the run. `profile`
    says how k % of n units is rounded. Undefined where a probability is exactly 0.

    Cost: 1 evaluation in addition to the full text.
    """

    share: Share = 0.2
    profile: Profile = "printed"
    removal: str = IN_PLACE
    reference: ClassVar[str] = "shrikumar2017learning"
    higher_is_better: ClassVar[bool] = False
    needs: ClassVar[frozenset[Need]] = frozenset({Need.PROBABILITIES})

    def keeps(self, explanation: Explanation) -> dict[str, KeepRows]:
        count = PROFILES[self.profile].count(len(explanation.units), self.share)
        return {self.removal: top_keeps(explanation.order(), [0, count], keep_top=False)}

    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        full, masked = evidence.log_probabilities(self.keeps(explanation)[self.removal], self.removal)
        return float(masked - full) if np.isfinite([full, masked]).all() else float("nan")
