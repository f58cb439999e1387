"""Deletion: does the probability fall early when the top units are deleted first?"""

from dataclasses import dataclass
from typing import ClassVar

from raison.core.metric import Evidence, KeepRows, Metric
from raison.core.results.explanation import Explanation
from raison.numerics.measures.curves import area, curve_keeps


@dataclass(frozen=True)
class DeletionAuc(Metric):
    """Area under p(class) as units are deleted from the full text, highest score first.

    AUC = 1/n sum_{k=1..n} (p_{k-1} + p_k) / 2 with p_k = F_y(x without its k top units), k = 0 included: the deletion
    game of RISE, one unit per step, normalised as in its code. In 0..1, lower is better. RISE blanks pixels; here the
    units are deleted and the text gets shorter, which is the only difference from `inverse_activation_auc`. The class
    is the explained one; RISE takes the predicted one.

    Cost: n - 1 evaluations in addition to the full and the empty text.
    """

    removal: str = "delete"
    reference: ClassVar[str] = "petsiuk2018rise"
    higher_is_better: ClassVar[bool] = False

    def keeps(self, explanation: Explanation) -> dict[str, KeepRows]:
        return {self.removal: curve_keeps(explanation.order(), keep_top=False)}

    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        return area(evidence.probabilities(self.keeps(explanation)[self.removal], self.removal))
