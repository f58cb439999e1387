"""Token F1: do the top units agree with those that people marked?"""

import math
from dataclasses import dataclass
from typing import ClassVar

from raison.core.metric import Evidence, Metric, Need
from raison.core.results.explanation import Explanation
from raison.numerics.measures.plausibility import (
    Annotators,
    Average,
    TopMarked,
    combine,
    counted,
    hard_prediction,
    mean_defined,
    mean_parts,
    overlap,
)


@dataclass(frozen=True)
class TokenF1(Metric):
    """F1 of the top units against the units that people marked.

    F1 = 2 tp / (predicted + marked). The predicted units are those with the highest scores: as many as were marked in
    the text, or with `top` a fixed number (all units of a shorter text). If scores tie at the cut, those that come
    first in the text are predicted. ERASER (section 4.1) takes for each data set the mean number that people marked;
    AML's table 3 has top=25, for reviews of hundreds of words. A fixed number is not informative for texts that are not
    much longer: all of a text of 25 words is predicted, whatever the scores.

    `average` "macro" is the mean over texts of their F1, "micro" the F1 of counts that are summed over the texts.
    `annotators` says how several annotators count (see raison.numerics.measures.plausibility.Annotators); with "each",
    macro averages F1 and micro the counts. As in ERASER's code, a text without marks scores 0 with `top`; without `top`
    nothing is predicted there either, and it does not count. In 0..1, higher is better; plausible is not faithful. The
    two texts of a pair are judged together, where ERASER counts them as two.

    Cost: no evaluation.
    """

    top: TopMarked = None
    average: Average = "macro"
    annotators: Annotators = "majority"
    reference: ClassVar[str] = "deyoung2020eraser"
    higher_is_better: ClassVar[bool] = True
    needs: ClassVar[frozenset[Need]] = frozenset({Need.RATIONALES})

    @property
    def pool(self) -> str:
        return "ratio" if self.average == "micro" else "mean"

    def measure(self, explanation: Explanation, evidence: Evidence) -> float | tuple[float, ...]:
        order = explanation.order()
        counts = [
            overlap(hard_prediction(order, self.top, relevant), relevant)
            for relevant in combine(evidence.rationales, self.annotators)
        ]
        if self.average == "micro":
            return counted(mean_parts(counts))
        return mean_defined([twice_hits / total if total else math.nan for twice_hits, total in counts])
