"""Log-probability drop: how much less likely is the output without the top units?"""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

from raison.core.metric import Evidence, KeepRows, Metric, Need
from raison.core.results.explanation import Explanation
from raison.core.settings.fields import Setting
from raison.numerics.measures.ranking import top_keeps


@dataclass(frozen=True)
class LogProbabilityDrop(Metric):
    """log p(output | whole text) - log p(output | text without its `top` highest units).

    The top-k log-probability drop of Cohen-Wang et al. 2024 (their section 4.1): the output is the statement that a
    language model wrote, or the explained class. `top` counts units, all of them in a shorter text; by default they are
    deleted, as sources are in the paper. Unbounded, higher is better. Undefined where a probability is exactly 0.

    Cost: 1 evaluation in addition to the full text.
    """

    top: Annotated[int, Setting(least=1)] = 1
    removal: str = "delete"
    reference: ClassVar[str] = "cohenwang2024contextcite"
    higher_is_better: ClassVar[bool] = True
    needs: ClassVar[frozenset[Need]] = frozenset({Need.PROBABILITIES})

    def keeps(self, explanation: Explanation) -> dict[str, KeepRows]:
        return {self.removal: top_keeps(explanation.order(), [0, self.top], keep_top=False)}

    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        full, without = evidence.log_probabilities(self.keeps(explanation)[self.removal], self.removal)
        drop = float(full) - float(without)
        return drop if math.isfinite(drop) else math.nan
