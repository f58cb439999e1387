"""Tests of one map on its own text: shuffled scores, harmless changes, and its strongest units removed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from raison.core.errors import InputError
from raison.core.metric import Evidence, KeepRows, Metric
from raison.core.model import LanguageModel
from raison.core.results.explanation import Explanation
from raison.judging.evaluate import evaluate, evaluate_maps
from raison.metrics.comprehensiveness import Comprehensiveness
from raison.metrics.harmless_change import HarmlessChange
from raison.numerics.measures.ranking import top_keeps

SHUFFLES = 99
"""Maps with the same scores in another order; p is then a whole percentage."""
STRONGEST = 3
"""Units that are removed, one after the other."""
FEWEST = 3
"""Minimum number of units for shuffling to be informative."""
REMOVALS = 3 + STRONGEST + 1 + SHUFFLES
"""The maximum number of masked texts that a check evaluates: each of its three tests reads the whole text. What changed
texts take is not counted."""


@dataclass(frozen=True)
class Remaining(Metric):
    """The probability of the target without the `count` highest units, which are masked.

    f(x without its top `count` units), by the removal of the explanation. Cost: 1 evaluation.
    """

    count: int = 1
    reference: ClassVar[str] = "deyoung2020eraser"
    higher_is_better: ClassVar[bool] = False

    def keeps(self, explanation: Explanation) -> dict[str, KeepRows]:
        return {"in_place": top_keeps(explanation.order(), [self.count], keep_top=False)}

    def measure(self, explanation: Explanation, evidence: Evidence) -> float:
        [value] = evidence.probabilities(self.keeps(explanation)["in_place"], "in_place")
        return float(value)


@dataclass(frozen=True, slots=True)
class Shuffled:
    """The drop of the value without the top fifth of the units: by the map, and by shuffled maps on average.

    `p` is the share of all maps, this one included, that are at least as good as this one.
    """

    own: float
    shuffled: float
    maps: int
    p: float


@dataclass(frozen=True, slots=True)
class Checks:
    """`remaining` are the target's values with 0, 1, 2 and 3 of the highest units removed.

    `shuffled` is None for fewer than three units or equal scores. `harmless` is the mean rank correlation with the maps
    of harmlessly changed texts; None if no change applies, and `why` gives the reason if the method does not allow it.
    """

    remaining: tuple[float, ...]
    removed: tuple[str, ...]
    shuffled: Shuffled | None
    harmless: float | None
    why: str


def checked(model: LanguageModel, e: Explanation) -> Checks:
    """The tests of one map. Raises RaisonErrors."""
    if e.outputs == "statement" or not e.units:
        raise InputError("a check is only for the explanation of a prediction.")
    top = e.order()[:STRONGEST]
    remaining = tuple(_values(model, e, [Remaining(count) for count in range(len(top) + 1)]))
    harmless, why = _harmless(model, e)
    removed = tuple(e.units[place].text for place in top)
    return Checks(remaining, removed, _shuffled(model, e), harmless, why)


def _shuffled(model: LanguageModel, e: Explanation) -> Shuffled | None:
    if len(e.units) < FEWEST or len(set(e.scores)) < 2:
        return None
    rng = np.random.default_rng(0)
    maps = [replace(e, scores=tuple(rng.permutation(e.scores).tolist())) for _ in range(SHUFFLES)]
    true_score, *others = np.array(evaluate_maps(model, [e, *maps], Comprehensiveness())).tolist()
    as_good = 1 + sum(value >= true_score for value in others)
    return Shuffled(true_score, float(np.mean(others)), SHUFFLES, as_good / (1 + SHUFFLES))


def _harmless(model: LanguageModel, e: Explanation) -> tuple[float | None, str]:
    try:
        [value] = _values(model, e, [HarmlessChange()])
    except InputError as error:
        return None, str(error)
    return (None, "") if math.isnan(value) else (value, "")


def _values(model: LanguageModel, e: Explanation, metrics: Sequence[Metric]) -> list[float]:
    return [float(scores.values[0]) for scores in evaluate(model, e, metrics, progress=False).metrics]
