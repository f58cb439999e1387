"""AUROC: does a marked unit score above an unmarked one?"""

from dataclasses import dataclass
from typing import ClassVar

from raison.core.metric import Evidence, Metric, Need
from raison.core.results.explanation import Explanation
from raison.numerics.measures.plausibility import Annotators, against_rationales, roc_area


@dataclass(frozen=True)
class Auroc(Metric):
    """Probability that a marked unit scores higher than an unmarked one; ties count half.

    The area under the ROC curve of each text, then the mean over texts, as in ERASER's code and IvRA's appendix F.
    `annotators` says how several annotators count (see raison.numerics.measures.plausibility.Annotators). In 0..1,
    higher is better; 0.5 for random scores and for equal ones. A text in which all or no units are marked has no such
    pair and is left out.

    Cost: no evaluation.
    """

    annotators: Annotators = "majority"
    reference: ClassVar[str] = "deyoung2020eraser"
    higher_is_better: ClassVar[bool] = True
    needs: ClassVar[frozenset[Need]] = frozenset({Need.RATIONALES})

    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        return against_rationales(explanation.scores, evidence.rationales, self.annotators, roc_area)
