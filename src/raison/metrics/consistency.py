"""Consistency: do texts that the model sees as similar get similar explanations?"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Float
from scipy.stats import spearmanr

from raison.core.metric import GroupEvidence, GroupMetric, Need
from raison.core.results.explanation import Explanation
from raison.core.settings.fields import Setting
from raison.numerics.measures.distances import Distance, padded_distances, positionwise_distances

Level = Literal["token", "text"]
Normalisation = Literal["sum", "none"]
FEWEST = 3
"""Two texts make one pair, and one pair has no order."""


@dataclass(frozen=True)
class Consistency(GroupMetric):
    """Spearman's rho between distances of hidden states and distances of explanations, over the pairs of a batch.

    rho(Dist(H_i, H_j), Dist(r_i, r_j)) over all pairs i < j of `batch` texts (Xie et al. 2024, eq. 12), averaged over
    batches (eq. 18). H is the mean of all layers' hidden states, (tokens, hidden), special tokens included; r holds the
    scores of the units. In -1..1, higher is better. A batch of fewer than 3 texts, or one whose distances are all
    equal, has no rho: it gives NaN and does not count. rho depends on the batch size: compare only equal ones.

    Cost: one forward pass per text, shared by all methods and seeds.

    The paper says that Dist is L2 and compares H at the token level (appendix B.4), and leaves the rest open. The
    choices here: the H of two texts are compared position by position, with zeros after the end of the shorter text,
    and the distances are averaged over the positions of the longer one. `level="text"` compares the means over each
    text's tokens. The r of two texts are compared as vectors, the shorter padded with zeros. IvRA's r sums to 1; other
    methods' scores have any scale and sign, so by default r = |s| / sum |s| (`normalise="none"` takes the scores as
    they are). Both distances depend on the texts' lengths, which alone can make rho positive: compare with the row of
    random scores.
    """

    batch: Annotated[
        int, Setting(least=FEWEST, words=f"a whole number of at least {FEWEST}, as pairs are ranked; the paper uses 64")
    ] = 64
    level: Level = "token"
    distance: Distance = "l2"
    normalise: Normalisation = "sum"
    reference: ClassVar[str] = "xie2024ivra"
    higher_is_better: ClassVar[bool] = True
    needs: ClassVar[frozenset[Need]] = frozenset({Need.SEVERAL_TEXTS, Need.HIDDEN_STATES})
    fewest: ClassVar[int] = FEWEST

    @property
    def size(self) -> int:
        return self.batch

    def measure(self, explanations: Sequence[Explanation], evidence: GroupEvidence) -> Sequence[float]:
        if len(explanations) < FEWEST:
            return [math.nan]
        between_scores = padded_distances([self._vector(e.scores) for e in explanations], self.distance)
        between_states = evidence.once("distances", lambda: self._between_states(evidence.hidden_states()))
        # Spearman's rho is 0/0 where one side has a single value.
        if np.ptp(between_scores) == 0 or np.ptp(between_states) == 0:
            return [math.nan]
        return [float(spearmanr(between_states, between_scores).statistic)]

    def _between_states(self, states: Sequence[Float[np.ndarray, "_tokens hidden"]]) -> Float[np.ndarray, " pairs"]:
        if self.level == "token":
            return positionwise_distances(states, self.distance)
        return padded_distances([state.mean(axis=0, dtype=np.float64) for state in states], self.distance)

    def _vector(self, scores: Sequence[float]) -> Float[np.ndarray, " units"]:
        if self.normalise == "none":
            return np.array(scores, dtype=np.float64)
        sizes = np.abs(np.array(scores, dtype=np.float64))
        return sizes / sizes.sum() if sizes.any() else sizes
