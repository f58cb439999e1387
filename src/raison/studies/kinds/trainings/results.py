"""The folder of a study that trains the models that it compares.

    trainings.json      what all kinds write (raison.studies.folder), rows, tasks, seeds, metrics
    trainings.jsonl     one line per task, row and seed: settings, scores, accuracy, costs, losses; no text
    trainings/          models while they are needed, and how each text was explained

Processes that share the work write trainings-1.jsonl, trainings-2.jsonl, ...; all of them are read together.
"""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from raison.core.errors import DataError
from raison.jobs.folder import TRAININGS
from raison.runs.judging import Learned
from raison.runs.statistics import parts_of, values_of
from raison.runs.task_accuracy import read_labels
from raison.studies.claims import PairedSample
from raison.studies.folder import check_claimed, read_header
from raison.studies.kinds.trainings.records import (
    STORE,
    MeasureClaim,
    TrainingRecord,
    TrainingRuns,
    TrainingsHead,
    read_records,
)
from raison.studies.kinds.trainings.tables import (
    ACCURACY,
    MEASURES,
    ColumnKey,
    averaged,
    has_more_trainings,
    independent,
    of_seeds,
    paired,
    scores,
    seeds_of,
    shared_seeds,
)

FOLDERS = (TRAININGS,)


def read(folder: Path) -> TrainingRuns:
    """What a study of trainings has written so far. Raises DataError if the folder holds none, or a newer version's."""
    header, text = read_header(folder, TRAININGS, TrainingsHead)
    known = {*MEASURES, *(metric.label for metric in header.metrics)}
    check_claimed(folder, "metric", (claim.metric for claim in header.claims), known)
    records, dropped = read_records(folder)
    _check_lengths(folder, records.values())
    return TrainingRuns(folder, header, text, records, read_labels(folder), dropped)


def _check_lengths(folder: Path, records: Iterable[TrainingRecord]) -> None:
    """DataError for a record of more or fewer texts than another of the same data, as of another --limit."""
    known: dict[str, int] = {}
    for record in records:
        for values in filter(None, (record.correct, *record.scores.values())):
            if len(values) != known.setdefault(record.test, len(values)):
                where = f"{record.task} on {record.test}, {record.row}, seed {record.seed},"
                counts = f"{len(values)} texts, and others have {known[record.test]}"
                raise DataError(f"{folder / STORE}: the record of {where} has {counts}: it belongs to another run.")


def places(results: TrainingRuns, claim: MeasureClaim) -> list[str]:
    """The task that a claim names, or all."""
    tasks = [task.name for task in results.header.tasks]
    return [task for task in tasks if claim.task in (None, task)]


def sample(results: TrainingRuns, claim: MeasureClaim, place: str) -> PairedSample | None:
    """Values averaged over the seeds, of single texts or of groups of texts; where there are more seeds than groups,
    values averaged over the groups (`averaged`).

    A claim about explanations is not judged if one of the explained models did not learn its task. Claims about
    accuracy and seconds are judged, because they are not about explanations.
    """
    study, where = results, ColumnKey(place, place)
    row, than, metric = claim.row, claim.than, claim.metric
    cell = scores(study, row, where, metric)
    other = scores(study, than, where, metric) if isinstance(than, str) else float(than)
    if cell is None or other is None:
        return None
    known = _learned(study, (row, than), where)
    learned, accuracy = Learned(1.0, 0.0) if metric in MEASURES else known, known.accuracy
    if isinstance(other, float):
        # Use the table's own interval, which for groups is over seeds and groups.
        interval = (cell.summary.low - other, cell.summary.high - other)
        table = independent(study, row, where, metric, seeds_of(study, row, where))
        values = values_of(cell) if table is None else averaged(table)
        rest = (other, cell.summary.mean, other, learned, cell.pool, interval, accuracy)
        trainings = tuple(value - other for value in of_seeds(study, row, where, metric).values())
        alone = table is not None and has_more_trainings(table)
        return PairedSample(metric, row, other, values, *rest, trainings=trainings, of_trainings=alone)
    means = (cell.summary.mean, other.summary.mean)
    first, second = paired(study, row, str(than), where, metric)
    if first is None or second is None or first.pool != second.pool:
        nothing = np.zeros((0, 1))
        return PairedSample(metric, row, than, nothing, nothing, *means, learned, accuracy=accuracy)
    tables = _tables(study, row, str(than), where, metric)
    if tables is None:
        parts, alone = (parts_of(first), parts_of(second)), False
    else:
        parts, alone = (averaged(tables[0]), averaged(tables[1])), has_more_trainings(tables[0])
    each = [of_seeds(study, label, where, metric) for label in (row, str(than))]
    trainings = tuple(each[0][seed] - each[1][seed] for seed in sorted(each[0].keys() & each[1].keys()))
    return PairedSample(
        metric,
        row,
        than,
        parts[0],
        parts[1],
        *means,
        learned,
        first.pool,
        accuracy=accuracy,
        trainings=trainings,
        of_trainings=alone,
    )


def _tables(
    study: TrainingRuns, row: str, than: str, where: ColumnKey, metric: str
) -> tuple[np.ndarray, np.ndarray] | None:
    """The independent values of two rows by a metric of groups, by training and group; None for single texts."""
    seeds = shared_seeds(study, row, than, where)
    one, two = (independent(study, label, where, metric, seeds) for label in (row, than))
    if one is None or two is None:
        return None
    # Groups that a metric left out of one row cannot be paired.
    unknown = np.isnan(one) | np.isnan(two) if one.shape == two.shape else np.zeros((), dtype=np.bool_)
    return np.where(unknown, np.nan, one), np.where(unknown, np.nan, two)


def _learned(study: TrainingRuns, rows: Sequence[str | float], place: ColumnKey) -> Learned:
    """The least accurate of the models that these rows explain."""
    cells = [scores(study, row, place, ACCURACY) for row in rows if isinstance(row, str)]
    known = [one.summary.mean for one in cells if one is not None]
    return Learned(min(known, default=math.nan), study.labels.majorities.get(place.test, math.nan))
