"""What a study of trainings states, held against its records."""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from raison.core.results import MetricScores
from raison.numerics.paired import Difference, against
from raison.runs.judging import Learned, Side, Verdict, corrected, judged
from raison.runs.learned import Labels, read_labels
from raison.studies.kinds.trainings.results import Trainings
from raison.studies.kinds.trainings.tables import ACCURACY, MEASURES, Place, gap, places, scores


def training_verdicts(study: Trainings) -> list[Verdict]:
    """Every claim on every task that it is about, by the rule of raison.runs.judging; the verdict's `run` is the task.

    Values are averaged over the seeds first; metrics of groups are paired seed by seed and group by group. A claim
    about explanations is not judged where one of the models that are explained did not learn its task; claims about
    accuracy and seconds are.
    """
    labels = read_labels(study.folder)
    return corrected(
        [
            _verdict(study, claim, place, labels)
            for claim in study.header["claims"]
            for place in places(study)
            if claim.get("task", place.task) == place.task
        ]
    )


def _verdict(study: Trainings, claim: dict[str, Any], place: Place, labels: Labels) -> Verdict:
    side: Side = "above" if "above" in claim else "below"
    row, than, metric = claim[side], claim["than"], claim["metric"]
    about = (claim["says"], place.task, metric, row, side, than)
    found = scores(study, row, place, metric)
    other = scores(study, than, place, metric) if isinstance(than, str) else float(than)
    if found is None or other is None:
        return Verdict(*about, finding="missing")
    than_mean = other if isinstance(other, float) else other.summary.mean
    difference = _against(found, other) if isinstance(other, float) else gap(study, row, than, place, metric)
    learned = _learned(study, [name for name in (row, than) if isinstance(name, str)], place, labels)
    told = Verdict(*about, "missing", found.summary.mean, than_mean)
    # What a training costs is no statement about explanations.
    verdict = judged(told, difference, Learned(1.0, 0.0) if metric in MEASURES else learned)
    return replace(verdict, accuracy=learned.accuracy)


def _learned(study: Trainings, rows: list[str], place: Place, labels: Labels) -> Learned:
    """The least accurate of the models that these rows explain."""
    found = [scores(study, row, place, ACCURACY) for row in rows]
    known = [one.summary.mean for one in found if one is not None]
    return Learned(min(known, default=math.nan), labels.majorities.get(place.test, math.nan))


def _against(found: MetricScores, number: float) -> Difference:
    """With the table's own interval, which for groups is over seeds and groups."""
    parts = np.array(found.parts or [[value] for value in found.values], dtype=np.float64)
    gap = against(parts.reshape(len(found.values), -1), number, found.pool)
    return replace(gap, low=found.summary.low - number, high=found.summary.high - number)
