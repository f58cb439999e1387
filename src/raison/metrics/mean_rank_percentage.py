"""Mean rank percentage: what share of the units, from the top, does it take to include all known ones?

The level of chance for n units of which k are known is k (n + 1) / ((k + 1) n): what a random order reaches on average.
"""

from dataclasses import dataclass
from typing import ClassVar

from raison.core.metric import Evidence, Metric, Need
from raison.core.results.explanation import Explanation
from raison.numerics.measures.plausibility import Annotators, against_rationales, expected_depth


@dataclass(frozen=True)
class MeanRankPercentage(Metric):
    """r / n with the smallest r such that the r top units of n include all that are known to matter.

    MeanRankPercentage of the thesis, section 2.2.3.1: a fraction, in spite of the name. In k/n..1 with k known units,
    lower is better; a random order reaches k (n + 1) / ((k + 1) n), somewhat above 1/2 for one known unit. If scores
    tie, the value is the mean over random breaking of ties, so that equal scores reach the level of chance wherever the
    known units are. `annotators` says how several rationales count (see
    raison.numerics.measures.plausibility.Annotators). A text without known units is left out.

    Cost: no evaluation.
    """

    annotators: Annotators = "majority"
    reference: ClassVar[str] = "oxford2022assessing"
    higher_is_better: ClassVar[bool] = False
    needs: ClassVar[frozenset[Need]] = frozenset({Need.RATIONALES})

    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        depth = against_rationales(explanation.scores, evidence.rationales, self.annotators, expected_depth)
        return depth / len(explanation.scores)
