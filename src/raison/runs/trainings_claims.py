"""What a study of trainings states, held against its records."""

import math
from typing import Any

from raison.core.results import MetricScores
from raison.numerics.paired import Difference
from raison.runs.claims import Finding, Side, Verdict
from raison.runs.trainings import Trainings
from raison.runs.trainings_table import Place, gap, places, scores


def training_verdicts(study: Trainings) -> list[Verdict]:
    """Every claim on every task that it is about; the verdict's `run` is the task.

    As for other studies, with values averaged over the seeds first; metrics of groups are paired seed by seed and group
    by group.
    """
    return [
        _verdict(study, claim, place)
        for claim in study.header["claims"]
        for place in places(study)
        if claim.get("task", place.task) == place.task
    ]


def _verdict(study: Trainings, claim: dict[str, Any], place: Place) -> Verdict:
    side: Side = "above" if "above" in claim else "below"
    row, than, metric = claim[side], claim["than"], claim["metric"]
    about = (claim["says"], place.task, metric, row, side, than)
    found = scores(study, row, place, metric)
    other = scores(study, than, place, metric) if isinstance(than, str) else float(than)
    if found is None or other is None:
        return Verdict(*about, finding="missing")
    than_mean = other if isinstance(other, float) else other.summary.mean
    difference = _against(found, other) if isinstance(other, float) else gap(study, row, than, place, metric)
    finding: Finding = _finding(difference, side) if difference.count else "missing"
    return Verdict(*about, finding, found.summary.mean, than_mean, difference)


def _finding(difference: Difference, side: Side) -> Finding:
    low, high = (difference.low, difference.high) if side == "above" else (-difference.high, -difference.low)
    # An interval that is NaN is on no side.
    return "holds" if low > 0 else "fails" if high < 0 else "undecided"


def _against(found: MetricScores, number: float) -> Difference:
    summary = found.summary
    return Difference(summary.mean - number, summary.low - number, summary.high - number, math.nan, summary.count)
