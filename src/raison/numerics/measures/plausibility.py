"""Scores compared with units that are known to matter: hard predictions, spans, curves and ranks."""

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Bool, Float

from raison.core.settings.fields import Setting
from raison.numerics.measures.agreement import relative
from raison.numerics.measures.ranking import top_keeps

Marks = Bool[np.ndarray, " units"]
UnitScores = Float[np.ndarray, " units"]
UnitSpan = tuple[int, int]
"""Units from the first number up to, but not including, the second."""

Average = Literal["macro", "micro"]

Annotators = Literal["majority", "union", "intersection", "each"]
"""How the rationales of several annotators are combined.

majority      what more than half of them marked: with two annotators that is what both marked
union         what at least one marked
intersection  what all marked
each          every annotator on their own; what is measured against each is averaged where it is defined
"""


TopMarked = Annotated[
    int | None, Setting(least=1, words="a whole number of at least 1, or None for as many units as were marked")
]
"""How many of the highest units are compared with those that matter."""


def combine(rationales: Sequence[Marks], annotators: Annotators) -> tuple[Marks, ...]:
    """The rationales to compare with: a single one, or with "each" one per annotator."""
    marks = np.stack(list(rationales))
    if annotators == "each":
        return tuple(marks)
    needed = {"majority": len(marks) // 2 + 1, "union": 1, "intersection": len(marks)}[annotators]
    return (marks.sum(axis=0) >= needed,)


def mean_defined(values: Sequence[float]) -> float:
    """The mean of all values that are not NaN; NaN if none is left."""
    defined = [value for value in values if not math.isnan(value)]
    return sum(defined) / len(defined) if defined else math.nan


def against_rationales(
    scores: Sequence[float],
    rationales: Sequence[Marks],
    annotators: Annotators,
    measure: Callable[[UnitScores, Marks], float],
) -> float:
    """What `measure` gives for the scores and the combined rationales; averaged over annotators where it is defined."""
    values = relative(np.array(scores, dtype=float))
    return mean_defined([measure(values, known) for known in combine(rationales, annotators)])


def mean_parts(rows: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    """`mean_defined` of each part."""
    return tuple(mean_defined(part) for part in zip(*rows, strict=True))


def counted(counts: tuple[float, ...]) -> tuple[float, ...]:
    """Hits and the number that they are of; NaN for a text that has nothing to hit, which does not count."""
    return counts if counts[1] else (math.nan, math.nan)


def hard_prediction(order: Sequence[int], top: int | None, relevant: Marks) -> Marks:
    """The first `top` units of `order`, all if there are fewer; with None as many as are relevant."""
    count = int(relevant.sum()) if top is None else top
    prediction: Marks = top_keeps(order, [count], keep_top=True)[0]
    return prediction


def overlap(predicted: Marks, relevant: Marks) -> tuple[float, float]:
    """(2 tp, predicted + relevant): their ratio is F1, of one text or of the sums over many."""
    return 2.0 * int((predicted & relevant).sum()), float(int(predicted.sum()) + int(relevant.sum()))


def spans(marks: Marks, segments: Sequence[int]) -> list[UnitSpan]:
    """The longest runs of neighbouring marked units; no run crosses from one segment into another."""
    runs: list[UnitSpan] = []
    for unit in np.flatnonzero(marks).tolist():
        if runs and runs[-1][1] == unit and segments[unit - 1] == segments[unit]:
            runs[-1] = (runs[-1][0], unit + 1)
        else:
            runs.append((unit, unit + 1))
    return runs


def matches(predicted: Sequence[UnitSpan], true: Sequence[UnitSpan], threshold: float) -> int:
    """The number of predicted spans that share at least `threshold` of the units of the union with some true span."""
    return sum(any(_intersection_over_union(one, other) >= threshold for other in true) for one in predicted)


def _intersection_over_union(one: UnitSpan, other: UnitSpan) -> float:
    common = max(0, min(one[1], other[1]) - max(one[0], other[0]))
    return common / (one[1] - one[0] + other[1] - other[0] - common)


def precision_recall_area(scores: UnitScores, relevant: Marks) -> float:
    """Area under precision over recall by trapezoids, from (recall 0, precision 1); NaN if all or no units matter.

    One point per distinct score, so that the order of tied units makes no difference.
    """
    if relevant.all() or not relevant.any():
        return math.nan
    order = np.argsort(-scores, kind="stable")
    last_of_ties = np.append(np.flatnonzero(np.diff(scores[order])), len(scores) - 1)
    hits = np.cumsum(relevant[order])[last_of_ties]
    precision, recall = hits / (last_of_ties + 1), hits / hits[-1]
    return float(np.trapezoid(np.append(1.0, precision), np.append(0.0, recall)))


def roc_area(scores: UnitScores, relevant: Marks) -> float:
    """Share of the pairs (relevant, not relevant) that the scores order correctly; ties count half; NaN without a
    pair."""
    if relevant.all() or not relevant.any():
        return math.nan
    others = np.sort(scores[~relevant])
    below = np.searchsorted(others, scores[relevant], side="left")
    not_above = np.searchsorted(others, scores[relevant], side="right")
    return float((below + not_above).mean() / (2 * len(others)))


def exact_top_chance(scores: UnitScores, known: Marks) -> float:
    """Probability that the top units, as many as are known, are the known ones when ties are broken at random.

    1 or 0 if no tie matters; NaN without known units.
    """
    if not known.any():
        return math.nan
    above, tied, marked = _around_last(scores, known)
    return 1 / math.comb(tied, marked) if above + marked == int(known.sum()) else 0.0


def expected_depth(scores: UnitScores, known: Marks) -> float:
    """Mean number of top units needed to include all known ones, over random breaking of ties; NaN without known ones.

    Among m tied units, the last of r known ones is at place r (m + 1) / (r + 1) on average.
    """
    if not known.any():
        return math.nan
    above, tied, marked = _around_last(scores, known)
    return above + marked * (tied + 1) / (marked + 1)


def top_precision(scores: UnitScores, known: Marks, top: int) -> float:
    """Expected share of the `top` units that are known, over random breaking of ties; NaN without known units."""
    return _top_hits(scores, known, top) / min(top, len(scores)) if known.any() else math.nan


def top_recall(scores: UnitScores, known: Marks, top: int) -> float:
    """Expected share of the known units among the `top`, over random breaking of ties; NaN without known units."""
    return _top_hits(scores, known, top) / int(known.sum()) if known.any() else math.nan


def _top_hits(scores: UnitScores, known: Marks, top: int) -> float:
    """Expected number of known units among the `top` highest scores, over random breaking of ties."""
    cut = np.sort(scores)[::-1][min(top, len(scores)) - 1]
    above, tied = scores > cut, scores == cut
    share = (min(top, len(scores)) - int(above.sum())) / int(tied.sum())
    return float((known & above).sum() + share * (known & tied).sum())


def _around_last(scores: UnitScores, known: Marks) -> tuple[int, int, int]:
    """Units above the lowest score of a known unit, units that have this score, known units among the latter."""
    lowest = scores[known].min()
    return int((scores > lowest).sum()), int((scores == lowest).sum()), int((known & (scores == lowest)).sum())
