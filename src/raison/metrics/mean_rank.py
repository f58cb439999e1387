"""Mean rank: how many top units does it take to include all known ones?

The level of chance for n units of which k are known is k (n + 1) / (k + 1): what a random order reaches on average.
"""

from dataclasses import dataclass
from typing import ClassVar

from raison.core.metric import Evidence, Metric, Need
from raison.core.results.explanation import Explanation
from raison.numerics.measures.plausibility import Annotators, against_rationales, expected_depth


@dataclass(frozen=True)
class MeanRank(Metric):
    """The smallest r such that the r units with the highest scores include all that are known to matter.

    MeanRank of the thesis, section 2.2.3.1, after Bastings et al. 2022; the mean is over texts. In k..n with k known
    units of n, lower is better; a random order reaches k (n + 1) / (k + 1). If scores tie, the value is the mean over
    random breaking of ties, so that equal scores reach the level of chance wherever the known units are. `annotators`
    says how several rationales count (see raison.numerics.measures.plausibility.Annotators). A text without known units
    is left out.

    Cost: no evaluation.
    """

    annotators: Annotators = "majority"
    reference: ClassVar[str] = "bastings2022shortcuts"
    higher_is_better: ClassVar[bool] = False
    needs: ClassVar[frozenset[Need]] = frozenset({Need.RATIONALES})

    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        return against_rationales(explanation.scores, evidence.rationales, self.annotators, expected_depth)
