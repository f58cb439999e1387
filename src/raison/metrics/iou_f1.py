"""IOU F1: do spans of top units match the spans that people marked?"""

import math
from dataclasses import dataclass
from typing import ClassVar

from raison.core.metric import Evidence, Mask, Metric, Need
from raison.core.results.explanation import Explanation
from raison.numerics.measures.plausibility import (
    Annotators,
    Average,
    TopMarked,
    combine,
    counted,
    hard_prediction,
    matches,
    mean_parts,
    spans,
)
from raison.numerics.measures.ranking import Share


@dataclass(frozen=True)
class IouF1(Metric):
    """F1 of spans: runs of neighbouring top units against runs of neighbouring marked units.

    A predicted span is a hit if |common units| / |units of both| with some marked span reaches `threshold`. ERASER
    (section 4.1): with P = hits / predicted spans and R = hits / marked spans, `average` "macro" is the harmonic mean
    of the mean P and the mean R over texts, "micro" 2 hits / (predicted + marked spans) with counts summed over the
    texts. `top` is the number of predicted units, None as many as were marked; ties at the cut go to the units that
    come first in the text. `annotators` says how several annotators count (see
    raison.numerics.measures.plausibility.Annotators); "each" averages P and R, or the counts. In 0..1, higher is
    better. As in ERASER's code, hits are predicted spans in R too, so a threshold below 0.5 can give values above 1.
    Marked spans that touch are one. A text without marks has no R and is excluded from macro; in ERASER's code it
    lowers the mean P.

    Cost: no evaluation.
    """

    threshold: Share = 0.5
    top: TopMarked = None
    average: Average = "macro"
    annotators: Annotators = "majority"
    reference: ClassVar[str] = "deyoung2020eraser"
    higher_is_better: ClassVar[bool] = True
    needs: ClassVar[frozenset[Need]] = frozenset({Need.RATIONALES})

    @property
    def pool(self) -> str:
        return "ratio" if self.average == "micro" else "f1"

    def measure(self, explanation: Explanation, evidence: Evidence) -> tuple[float, ...]:
        parts = mean_parts(
            [self._parts(explanation, relevant) for relevant in combine(evidence.rationales, self.annotators)]
        )
        return counted(parts) if self.average == "micro" else parts

    def _parts(self, explanation: Explanation, relevant: Mask) -> tuple[float, float]:
        segments = [unit.segment for unit in explanation.units]
        predicted = spans(hard_prediction(explanation.order(), self.top, relevant), segments)
        true = spans(relevant, segments)
        hits = matches(predicted, true, self.threshold)
        if self.average == "micro":
            return 2.0 * hits, float(len(predicted) + len(true))
        if not true:
            return math.nan, math.nan
        return hits / len(predicted) if predicted else math.nan, hits / len(true)
