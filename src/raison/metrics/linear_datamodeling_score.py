"""Linear datamodeling score: do sums of scores predict the likelihood of the output after random removals?"""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from raison.core.draws import generator_for
from raison.core.metric import Evidence, KeepRows, Metric, Need
from raison.core.results.explanation import Explanation
from raison.core.settings.fields import Setting
from raison.numerics.measures.agreement import relative, spearman


@dataclass(frozen=True)
class LinearDatamodelingScore(Metric):
    """Spearman's correlation of sum_{i kept} s_i with log-odds(output | kept units), over random removals.

    LDS = rho({f(v_1), ..., f(v_m)}, {<s, v_1>, ..., <s, v_m>}), after Park et al. 2023, for contexts by Cohen-Wang et
    al. 2024 (their section 4.1): each of the m = `samples` vectors v keeps every unit with probability `keep`. The
    output is the statement that a language model wrote, or the explained class, and f its log-odds, as in the paper:
    its log-probability has the same ranks, but ends near 0, where removals that hardly matter could no longer be told
    apart. Sums and log-odds that agree to six decimals of the largest tie. The removals are held out: they depend on
    the text, its units and this metric alone, never on what a method drew, and are the same for all methods. In -1..1,
    higher is better; NaN where all sums or all outputs are equal. `removal` None is that of the explanation.

    Cost: up to `samples` evaluations, shared by all methods.
    """

    samples: Annotated[int, Setting(least=3)] = 64
    keep: Annotated[float, Setting(above=0, below=1, words="a probability above 0 and below 1")] = 0.5
    removal: str | None = None
    reference: ClassVar[str] = "cohenwang2024contextcite"
    higher_is_better: ClassVar[bool] = True
    needs: ClassVar[frozenset[Need]] = frozenset({Need.PROBABILITIES})
    ordered: ClassVar[bool] = False

    def keeps(self, explanation: Explanation) -> dict[str, KeepRows]:
        spans = [(unit.start, unit.end, unit.segment) for unit in explanation.units]
        rng = generator_for(explanation.text, spans, self.keep, "linear_datamodeling_score")
        return {self.removal or explanation.removal: rng.random((self.samples, len(spans))) < self.keep}

    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        [(removal, keeps)] = self.keeps(explanation).items()
        measured = evidence.log_probabilities(keeps, removal)
        if not np.isfinite(measured).all():
            return math.nan
        predicted = keeps @ np.array(explanation.scores, dtype=np.float64)
        least = np.minimum(measured, -np.finfo(np.float64).tiny)
        return spearman(relative(predicted), relative(least - np.log(-np.expm1(least))))
