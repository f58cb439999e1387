"""Precision at the top: how many of the top units are known to matter?"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, ClassVar

from raison.core.metric import Evidence, Metric, Need
from raison.core.results.explanation import Explanation
from raison.core.settings.fields import Setting
from raison.numerics.measures.plausibility import Annotators, against_rationales, top_precision


@dataclass(frozen=True)
class PrecisionAtTop(Metric):
    """Share of the `top` units with the highest scores that are known to matter.

    P@k = |top k and known| / k with k = `top`, as in information retrieval. The known units are those that people
    marked, or the sources that an answer rests on. A text of fewer than k units counts all of them. With one known
    unit, the default says how often the best unit is the right one; a random order reaches |known| / n. If scores tie
    at the cut, the value is the mean over all ways to break the tie. `annotators` says how several rationales count
    (see raison.numerics.measures.plausibility.Annotators). In 0..1, higher is better. A text without known units is
    left out.

    Cost: no evaluation.
    """

    top: Annotated[int, Setting(least=1)] = 1
    annotators: Annotators = "majority"
    reference: ClassVar[str] = "deyoung2020eraser"
    higher_is_better: ClassVar[bool] = True
    needs: ClassVar[frozenset[Need]] = frozenset({Need.RATIONALES})

    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        return against_rationales(
            explanation.scores, evidence.rationales, self.annotators, partial(top_precision, top=self.top)
        )
