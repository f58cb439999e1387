"""One record of a training, a post-hoc method or a plain model, and all records of a study of trainings."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Literal

from raison.core.settings.reading import plain_values
from raison.jobs.store import RecordStore
from raison.runs.headers import Count
from raison.runs.record import number, read_keyed, scalar
from raison.runs.record_validation import check_training
from raison.runs.summary import MetricInfo, Value
from raison.runs.task_accuracy import Labels
from raison.studies.folder import Claim, StudyHead, WrittenStudy

MODELS = "trainings"
JUDGED = "judged"
"""The folder in a model's folder with the evaluation of it and its explanations, a run for each task's data."""
STORE = "trainings.jsonl"
PLAIN: Final = "plain"
"""The row of the fine-tuned model itself."""

RowKind = Literal["plain", "posthoc", "training", "control"]
TrainingKey = tuple[str, str, str, int]
"""Task, test, row, seed."""


@dataclass(frozen=True, slots=True)
class ExplanationCost:
    """The cost of explaining each test text."""

    seconds: tuple[float, ...] = ()
    evaluations: tuple[float, ...] = ()
    gradients: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class TrainingRecord:
    """One row of one task under one seed, judged on the data of `test` (the task's own, or those of another task).

    `scores` has each text's value by metrics of single texts, `groups` each group's values by metrics of many.
    `correct` says for each text whether the explained model predicts its label. `texts` is the number of training
    texts. `history` is the training's log.
    """

    task: str
    test: str
    row: str
    kind: RowKind
    seed: int
    method: str
    settings: Mapping[str, Any]
    texts: int
    scores: Mapping[str, tuple[Value, ...]]
    groups: Mapping[str, tuple[tuple[float, ...], ...]]
    correct: tuple[int, ...]
    history: Mapping[str, Any]
    training_seconds: float
    explaining: ExplanationCost = ExplanationCost()

    @property
    def key(self) -> TrainingKey:
        return (self.task, self.test, self.row, self.seed)

    @property
    def accuracy(self) -> float:
        """Share of the test texts whose label is predicted."""
        return sum(self.correct) / len(self.correct) if self.correct else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; NaN becomes None."""
        return plain_values({**asdict(self), "accuracy": self.accuracy})

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "TrainingRecord":
        """The inverse of `to_dict`. Raises DataError, KeyError, TypeError or ValueError for something else."""
        check_training(data)
        same = ("task", "test", "row", "kind", "seed", "method", "settings", "texts", "history")
        return cls(
            **{name: data[name] for name in same},
            scores={metric: tuple(number(value) for value in values) for metric, values in data["scores"].items()},
            groups={
                metric: tuple(tuple(scalar(value) for value in group) for group in groups)
                for metric, groups in data["groups"].items()
            },
            correct=tuple(int(value) for value in data["correct"]),
            training_seconds=scalar(data["training_seconds"]),
            explaining=ExplanationCost(
                **{name: tuple(scalar(value) for value in values) for name, values in data["explaining"].items()}
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureClaim(Claim):
    """A claim by a metric, or by another measure of every row; for one task or all."""

    metric: str
    task: str | None = None

    @property
    def measured(self) -> str:
        """The metric."""
        return self.metric


@dataclass(frozen=True, slots=True)
class PartHead:
    """A part of a task's data."""

    name: str
    rows: Count


@dataclass(frozen=True, slots=True)
class DataHead:
    """A task's data."""

    train: PartHead
    test: PartHead
    dev: PartHead | None = None


@dataclass(frozen=True, slots=True)
class TaskHead:
    """A task: its base, its data, and the other tasks on whose data its models are evaluated."""

    name: str
    base: str
    also: tuple[str, ...]
    data: DataHead

    @property
    def tests(self) -> tuple[str, ...]:
        """The tasks on whose data its models are judged, its own first."""
        return (self.name, *self.also)


@dataclass(frozen=True, slots=True)
class TrainingHead:
    """A row of the study on some of its tasks; `criteria` have their short names."""

    name: str
    kind: RowKind
    method: str
    tasks: tuple[str, ...]
    settings: Mapping[str, Any]
    criteria: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingsHead(StudyHead):
    """The request of a study of trainings; `gains` has the metric for each criterion."""

    seeds: tuple[int, ...]
    metrics: tuple[MetricInfo, ...]
    tasks: tuple[TaskHead, ...]
    rows: tuple[TrainingHead, ...]
    gains: Mapping[str, str]
    claims: tuple[MeasureClaim, ...] = ()


@dataclass(frozen=True, slots=True)
class TrainingRuns(WrittenStudy):
    """What a study of trainings has written so far."""

    header: TrainingsHead
    records: Mapping[TrainingKey, TrainingRecord]
    labels: Labels
    dropped: int = 0

    @property
    def progress(self) -> tuple[int, int]:
        """The number of records so far, and the final number for all rows, tasks and seeds."""
        return len(self.records), len(self.wanted)

    @property
    def wanted(self) -> tuple[TrainingKey, ...]:
        """The keys of all records of the finished study."""
        return tuple(
            (task.name, test, row.name, seed)
            for seed in self.header.seeds
            for task in self.header.tasks
            for row in self.header.rows
            if task.name in row.tasks
            for test in task.tests
        )

    def unfinished(self) -> Iterator[str]:
        """What is missing, with the first missing record, and what was left out."""
        yield from WrittenStudy.unfinished(self)
        missing = next((key for key in self.wanted if key not in self.records), None)
        if missing is not None:
            task, test, row, seed = missing
            yield f"The first missing record: {task} on {test}, {row}, seed {seed}. Means are over the available seeds."


def read_records(folder: Path) -> tuple[dict[TrainingKey, TrainingRecord], int]:
    """The records of all processes by key, and how many broken lines were left out. Raises DataError."""
    return read_keyed(store_of(folder), TrainingRecord.from_dict)


def slug(name: str) -> str:
    """Small letters, digits and single hyphens."""
    return re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")


def model_folder(folder: Path, task: str, row: str, seed: int) -> Path:
    """The folder of the model of a row, by its name; in a study's folder."""
    return folder / MODELS / task / f"{slug(row)}-{seed}"


def store_of(folder: Path, shard: int | None = None) -> RecordStore:
    """The store for a process's records; `shard` is its number if several share the work."""
    return RecordStore(folder / STORE, shard)
