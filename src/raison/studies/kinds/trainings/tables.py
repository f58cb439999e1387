"""The records of trainings as rows and tasks: values over texts and seeds, accuracy, seconds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from raison.core.results.scores import MetricScores, Summary
from raison.numerics.statistics.crossed import crossed_interval
from raison.numerics.statistics.paired import Difference
from raison.runs.judging import UNKNOWN
from raison.runs.statistics import subtract
from raison.runs.summary import MetricInfo, Value, metric_scores
from raison.studies.kinds.trainings.records import PLAIN, RowKind, TrainingHead, TrainingRecord, TrainingRuns

ACCURACY, TRAINING, EXPLAINING = "accuracy", "training_seconds", "explaining_seconds"
MEASURES = {ACCURACY: True, TRAINING: False, EXPLAINING: False}
"""Measures of every row besides the study's metrics, and whether higher is better."""


@dataclass(frozen=True, slots=True)
class ColumnKey:
    """The key of a column: models of `task`, evaluated on the data of `test`."""

    task: str
    test: str

    @property
    def title(self) -> str:
        """The task, or the transfer of its models to another one."""
        return self.task if self.task == self.test else f"{self.task} on {self.test}"


def places(study: TrainingRuns, transferred: bool = False) -> list[ColumnKey]:
    """Every task on its own data, or (`transferred`) on that of the tasks that it is also judged on."""
    return [
        ColumnKey(task.name, test)
        for task in study.header.tasks
        for test in (task.also if transferred else [task.name])
    ]


def rows(study: TrainingRuns, *kinds: RowKind) -> list[TrainingHead]:
    """The rows of these kinds, in the study's order."""
    return [row for row in study.header.rows if row.kind in kinds]


def info_of(study: TrainingRuns, metric: str) -> MetricInfo:
    """The description of a metric or of a measure of every row. Raises KeyError for another one."""
    known = {info.label: info for info in study.header.metrics}
    return known[metric] if metric in known else MetricInfo(metric, MEASURES[metric])


def seeds_of(study: TrainingRuns, row: str, place: ColumnKey) -> list[int]:
    """The seeds under which a row is finished."""
    return [seed for seed in study.header.seeds if (place.task, place.test, row, seed) in study.records]


def scores(
    study: TrainingRuns, row: str, place: ColumnKey, metric: str, seeds: Sequence[int] | None = None
) -> MetricScores | None:
    """A row's values on a task by a metric, or by one of MEASURES; None if there is no record.

    Values of single texts are averaged over the seeds, and the interval is over texts. Those of groups of texts are
    left as they are, seed after seed, and the interval is over seeds and groups. A training has one duration a seed.
    """
    records = records_of(study, row, place, seeds)
    if not records:
        return None
    info = info_of(study, metric)
    if metric == TRAINING:
        return _grouped(info, [[(record.training_seconds,)] for record in records])
    if info.grouped:
        return _grouped(info, [record.groups.get(metric, ()) for record in records])
    columns = [_column(record, metric) for record in records]
    # Not every row has all values: the plain model has no explanations.
    return metric_scores(info, columns) if all(columns) else None


def paired(
    study: TrainingRuns, one: str, other: str, place: ColumnKey, metric: str
) -> tuple[MetricScores | None, MetricScores | None]:
    """Both rows under the seeds that both have."""
    shared = shared_seeds(study, one, other, place)
    return scores(study, one, place, metric, shared), scores(study, other, place, metric, shared)


def independent(
    study: TrainingRuns, label: str, place: ColumnKey, metric: str, seeds: Sequence[int]
) -> Float[np.ndarray, "trainings groups"] | None:
    """The values of groups of texts under these seeds, or the seconds of trainings; None for values of single texts."""
    if not (metric == TRAINING or info_of(study, metric).grouped):
        return None
    cell = scores(study, label, place, metric, seeds)
    return np.zeros((0, 0)) if cell is None else np.array(cell.values).reshape(len(seeds), -1)


def averaged(table: Float[np.ndarray, "trainings groups"]) -> Float[np.ndarray, "units one"]:
    """A value for each group of texts, over the seeds, or for each seed, over its groups, whichever are more.

    Every seed judges the same groups, so that the single values are not independent. NaN where nothing is known.
    """
    axis = 1 if has_more_trainings(table) else 0
    known = ~np.isnan(table)
    sums, counts = np.where(known, table, 0).sum(axis), known.sum(axis)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)[:, None]


def has_more_trainings(table: Float[np.ndarray, "trainings groups"]) -> bool:
    """Whether `averaged` gives a value for each training."""
    return table.shape[0] > table.shape[1]


def shared_seeds(study: TrainingRuns, one: str, other: str, place: ColumnKey) -> list[int]:
    """The seeds under which both rows are finished."""
    return [seed for seed in seeds_of(study, one, place) if seed in seeds_of(study, other, place)]


def against_plain(study: TrainingRuns, row: str, place: ColumnKey) -> Difference:
    """A row's accuracy minus that of the plain models, under the seeds that both have; unknown if there are none."""
    own, plain = paired(study, row, PLAIN, place, ACCURACY)
    return UNKNOWN if own is None or plain is None else subtract(own, plain)


def deviation(cell: MetricScores) -> float:
    """The standard deviation of the seeds' values; NaN for one seed."""
    return float(np.std(cell.seed_means, ddof=1)) if len(cell.seed_means) > 1 else math.nan


def of_seeds(study: TrainingRuns, row: str, place: ColumnKey, metric: str) -> dict[int, float]:
    """Each seed's value by itself, of those under which it is defined."""
    cells = {seed: scores(study, row, place, metric, [seed]) for seed in seeds_of(study, row, place)}
    means = {seed: one.summary.mean for seed, one in cells.items() if one is not None}
    return {seed: mean for seed, mean in means.items() if not math.isnan(mean)}


def _column(record: TrainingRecord, metric: str) -> tuple[Value, ...]:
    """A number, or parts, per text."""
    if metric == ACCURACY:
        return record.correct
    return record.explaining.seconds if metric == EXPLAINING else record.scores.get(metric, ())


def records_of(
    study: TrainingRuns, row: str, place: ColumnKey, seeds: Sequence[int] | None = None
) -> list[TrainingRecord]:
    """A row's records under these seeds, or under all."""
    keys = [(place.task, place.test, row, seed) for seed in (study.header.seeds if seeds is None else seeds)]
    return [study.records[key] for key in keys if key in study.records]


def _grouped(info: MetricInfo, seeds: Sequence[Sequence[Sequence[float]]]) -> MetricScores | None:
    """Scores from the values of each seed's groups of texts; the seconds of a training are one group of one value."""
    flat = [[value for group in groups for value in group] for groups in seeds]
    if len({len(values) for values in flat}) != 1 or not flat[0]:
        return None
    table = np.array(flat, dtype=np.float64)
    count = int((~np.isnan(table)).sum())
    means = [float(np.nanmean(values)) if not np.isnan(values).all() else math.nan for values in table]
    return MetricScores(
        metric=info.label,
        higher_is_better=info.higher_is_better,
        values=tuple(table.ravel().tolist()),
        summary=Summary(*crossed_interval(table), count),
        seed_means=tuple(means) if len(means) > 1 else (),
    )
