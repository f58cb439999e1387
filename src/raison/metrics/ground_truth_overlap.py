"""Ground truth overlap: are the top units exactly the known ones?

The level of chance for n units of which k are known is 1 / (n choose k): what a random order reaches on average.
"""

from dataclasses import dataclass
from typing import ClassVar

from raison.core.metric import Evidence, Metric, Need
from raison.core.results.explanation import Explanation
from raison.numerics.measures.plausibility import Annotators, against_rationales, exact_top_chance


@dataclass(frozen=True)
class GroundTruthOverlap(Metric):
    """1 if the k units with the highest scores are the k units that are known to matter, otherwise 0.

    GTOverlap of the thesis, section 2.2.3.1, for data made so that known features decide the label (Zhou et al. 2022).
    In 0..1, higher is better; a random order reaches 1 / (n choose k). If scores tie at the cut, the value is the
    probability of a hit when ties are broken at random, so that equal scores reach the level of chance wherever the
    known units are. `annotators` says how several rationales count (see
    raison.numerics.measures.plausibility.Annotators). A text without known units is left out.

    Cost: no evaluation.
    """

    annotators: Annotators = "majority"
    reference: ClassVar[str] = "oxford2022assessing"
    higher_is_better: ClassVar[bool] = True
    needs: ClassVar[frozenset[Need]] = frozenset({Need.RATIONALES})

    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        return against_rationales(explanation.scores, evidence.rationales, self.annotators, exact_top_chance)
