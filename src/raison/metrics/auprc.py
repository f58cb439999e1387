"""AUPRC: do the scores rank the marked units first, at every cut?"""

from dataclasses import dataclass
from typing import ClassVar

from raison.core.metric import Evidence, Metric, Need
from raison.core.results.explanation import Explanation
from raison.numerics.measures.plausibility import Annotators, against_rationales, precision_recall_area


@dataclass(frozen=True)
class Auprc(Metric):
    """Area under the precision-recall curve of the scores against the units in the human rationale.

    Trapezoids over recall, one point per distinct score, from (recall 0, precision 1): per text as in ERASER's code,
    then the mean over texts. `annotators` says how several annotators count (see
    raison.numerics.measures.plausibility.Annotators). In 0..1, higher is better. The level of chance grows with the
    share of marked units. Trapezoids overestimate ties: equal scores reach (1 + share) / 2, more than random ones. Read
    it together with auroc, which has no such gap. A text in which all or no units are marked says nothing about the
    scores and is left out; ERASER counts it as 1 or 0.5.

    Cost: no evaluation.
    """

    annotators: Annotators = "majority"
    reference: ClassVar[str] = "deyoung2020eraser"
    higher_is_better: ClassVar[bool] = True
    needs: ClassVar[frozenset[Need]] = frozenset({Need.RATIONALES})

    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        return against_rationales(explanation.scores, evidence.rationales, self.annotators, precision_recall_area)
