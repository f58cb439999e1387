"""Monotonicity: does the probability keep rising when units are added from the bottom?"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from raison.core.metric import IN_PLACE, Evidence, KeepRows, Metric
from raison.core.results.explanation import Explanation
from raison.numerics.measures.curves import curve_keeps

TOLERANCE = 1e-5
"""A smaller drop of the log-odds is a rounding error; a bound on p itself would hide all steps near 0 or 1."""


@dataclass(frozen=True)
class Monotonicity(Metric):
    """Share of the steps at which p(class) does not fall as units are added, lowest score first.

    1/(n-1) |{k in 2..n: p_k >= p_{k-1}}| with p_k = F_y(only the k bottom units). A decrease of the log-odds by less
    than 1e-5 does not count as a fall (of one number, or of a statement's log-probability, by less than 1e-5 of it). In
    0..1, higher is better; a single unit has no step and scores 1. In its code, the test of Arya et al. 2019 (after
    Luss et al. 2019) asks whether every step holds, which is rare for long texts; this share keeps its steps, so the
    curve starts at the first unit and not at the empty text. Read it together with other metrics: if units contribute
    independently, it counts the units for the class in any order, and only the first unit makes a difference. Units are
    masked in place by default.

    Cost: n - 1 evaluations in addition to the full text.
    """

    removal: str = IN_PLACE
    reference: ClassVar[str] = "arya2019one"
    higher_is_better: ClassVar[bool] = True

    def keeps(self, explanation: Explanation) -> dict[str, KeepRows]:
        return {self.removal: curve_keeps(explanation.order()[::-1], keep_top=True)[1:]}

    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        values = evidence.probabilities(self.keeps(explanation)[self.removal], self.removal)
        if len(values) == 1:
            return 1.0
        before = values[:-1]
        # A small change of the log-odds changes p by p (1 - p) times as much; a number, or a
        # log-probability, is rounded by its size.
        sizes = np.abs(before) if explanation.outputs in ("number", "statement") else before * (1 - before)
        return float((np.diff(values) >= -TOLERANCE * sizes).mean())
