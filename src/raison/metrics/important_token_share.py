"""Important token share: how much of the text does the explanation call important?"""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from raison.core.metric import Evidence, Metric
from raison.core.results.explanation import Explanation
from raison.core.settings.fields import Setting
from raison.numerics.measures.agreement import relative

THRESHOLDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@dataclass(frozen=True)
class ImportantTokenShare(Metric):
    """Share of the units whose min-max normalised score is above z, averaged over the thresholds z.

    1/|Z| sum_{z in Z} |{i: (s_i - min s) / (max s - min s) > z}| / n, IvRA's appendix D. The paper calls it the AOPC of
    important tokens and prints no formula; the mean over Z is a choice made here. In 1/n..(n-1)/n, small if few units
    stand out. It is descriptive: neither end is better. Scores keep their sign, as in the paper, so that units against
    the class count as the least important; with `absolute` their magnitudes are normalised. Equal scores (including a
    single unit) cannot be normalised: NaN. Not comparable between units of different sizes.

    Cost: no evaluation.
    """

    thresholds: Annotated[
        tuple[float, ...],
        Setting(least=0, below=1, fewest=1, words="one or more numbers, each at least 0 and below 1"),
    ] = THRESHOLDS
    absolute: bool = False
    reference: ClassVar[str] = "xie2024ivra"
    higher_is_better: ClassVar[bool | None] = None
    ordered: ClassVar[bool] = False

    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        scores = np.array(explanation.scores, dtype=float)
        scores = np.abs(scores) if self.absolute else scores
        # Differences that are rounding would be stretched to the whole range.
        if np.ptp(relative(scores)) == 0:
            return math.nan
        normalised = (scores - scores.min()) / np.ptp(scores)
        return float((normalised[:, None] > np.array(self.thresholds)).mean())
