"""Activation study: does the probability rise early when units are inserted from the top?"""

from dataclasses import dataclass
from typing import ClassVar

from raison.core.metric import IN_PLACE, Evidence, KeepRows, Metric
from raison.core.results.explanation import Explanation
from raison.numerics.measures.curves import area, at_shares, curve_keeps


@dataclass(frozen=True)
class ActivationAuc(Metric):
    """Area under p(class) as units are inserted, highest score first, into a fully masked text.

    AUC = 1/n sum_{k=1..n} (p_{k-1} + p_k) / 2 with p_k = F_y(only the k top units), k = 0 included: the activation
    study of Progressive Inference, 4.1. The paper prints no normalisation; here the axis is the share of units. In
    0..1, higher is better. Absent units are masked in place, as in the paper; with `removal` "delete" it is
    `insertion_auc`. The class is the explained one; the paper explains the true class.

    With `curve` the records hold the curve as well, at shares of 0, 10, ..., 100 % of the units, interpolated linearly;
    a study draws its mean for each method.

    Cost: n - 1 evaluations in addition to the full and the empty text.
    """

    removal: str = IN_PLACE
    curve: bool = False
    reference: ClassVar[str] = "kariyappa2024progressive"
    higher_is_better: ClassVar[bool] = True

    @property
    def pool(self) -> str:
        return "curve" if self.curve else "mean"

    def keeps(self, explanation: Explanation) -> dict[str, KeepRows]:
        return {self.removal: curve_keeps(explanation.order(), keep_top=True)}

    def measure(self, explanation: Explanation, evidence: Evidence) -> float | tuple[float, ...]:
        values = evidence.probabilities(self.keeps(explanation)[self.removal], self.removal)
        return (area(values), *at_shares(values)) if self.curve else area(values)
