"""The folder of a study that trains the models that it compares.

    study.toml          the study file as it was run
    trainings.json      what was asked: rows, tasks, seeds, metrics, claims
    trainings.jsonl     one line per task, row and seed: settings, scores, accuracy, costs, losses; no text
    trainings/          models while they are needed, and how each text was explained

Processes that share the work write trainings-1.jsonl, trainings-2.jsonl, ...; all of them are read together.
"""

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from raison.core.errors import DataError
from raison.jobs.store import RecordStore
from raison.runs.checked import check_schema, check_training, check_trainings
from raison.runs.summary import Value
from raison.studies.kinds.comparison.results import FILE

SCHEMA = 1
HEADER = "trainings.json"
MODELS = "trainings"
KIND = "trainings"
"""The value of `kind` in the study files of this sort."""
PLAIN = "plain"
"""The row of the fine-tuned model itself."""

RowKind = Literal["plain", "posthoc", "training", "control"]
Key = tuple[str, str, str, int]
"""Task, test, row, seed."""


@dataclass(frozen=True, slots=True)
class Explaining:
    """What explaining each test text took."""

    seconds: tuple[float, ...] = ()
    evaluations: tuple[float, ...] = ()
    gradients: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class TrainingRecord:
    """One row of one task under one seed, judged on the data of `test` (the task's own, or those of another task).

    `scores` has each text's value by metrics of single texts, `groups` each group's values by metrics of many.
    `correct` says of each text whether the model that is explained predicts its label. `plain_accuracy` is that of the
    fine-tuned model. `texts` were learned from. `history` is what the training wrote down.
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
    plain_accuracy: float
    history: Mapping[str, Any]
    training_seconds: float
    explaining: Explaining = Explaining()

    @property
    def key(self) -> Key:
        return (self.task, self.test, self.row, self.seed)

    @property
    def accuracy(self) -> float:
        """Share of the test texts whose label is predicted."""
        return sum(self.correct) / len(self.correct) if self.correct else math.nan

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; NaN becomes None."""
        plain: dict[str, Any] = _plain(
            {
                "task": self.task,
                "test": self.test,
                "row": self.row,
                "kind": self.kind,
                "seed": self.seed,
                "method": self.method,
                "settings": self.settings,
                "texts": self.texts,
                "scores": self.scores,
                "groups": self.groups,
                "correct": self.correct,
                "accuracy": self.accuracy,
                "plain_accuracy": self.plain_accuracy,
                "history": self.history,
                "training_seconds": self.training_seconds,
                "explaining": {
                    "seconds": self.explaining.seconds,
                    "evaluations": self.explaining.evaluations,
                    "gradients": self.explaining.gradients,
                },
            }
        )
        return plain

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "TrainingRecord":
        """The inverse of `to_dict`. Raises KeyError, TypeError or ValueError for something else."""
        same = ("task", "test", "row", "kind", "seed", "method", "settings", "texts", "history")
        return cls(
            **{name: data[name] for name in same},
            scores={metric: tuple(_value(value) for value in values) for metric, values in data["scores"].items()},
            groups={
                metric: tuple(tuple(_number(value) for value in group) for group in groups)
                for metric, groups in data["groups"].items()
            },
            correct=tuple(int(value) for value in data["correct"]),
            plain_accuracy=_number(data["plain_accuracy"]),
            training_seconds=_number(data["training_seconds"]),
            explaining=Explaining(
                **{name: tuple(_number(value) for value in values) for name, values in data["explaining"].items()}
            ),
        )


@dataclass(frozen=True, slots=True)
class Trainings:
    """What a study of trainings has written so far. `dropped` lines were broken; their work is done again."""

    folder: Path
    header: Mapping[str, Any]
    text: str
    records: Mapping[Key, TrainingRecord]
    dropped: int = 0

    @property
    def file(self) -> dict[str, Any]:
        """The study file, parsed."""
        return tomllib.loads(self.text)

    @property
    def title(self) -> str:
        """What the study is called."""
        return str(self.file.get("title", self.header["name"]))

    @property
    def wanted(self) -> tuple[Key, ...]:
        """The keys of all records of the finished study."""
        return tuple(
            (task["name"], test, row["name"], seed)
            for seed in self.header["seeds"]
            for task in self.header["tasks"]
            for row in self.header["rows"]
            if task["name"] in row["tasks"]
            for test in (task["name"], *task["also"])
        )


def is_trainings(folder: Path) -> bool:
    """Whether a folder holds a study of trainings."""
    return (folder / HEADER).exists()


def read_trainings(folder: Path) -> Trainings:
    """What a study of trainings has written so far. Raises DataError if the folder holds none, or a newer version's."""
    try:
        header = json.loads((folder / HEADER).read_text(encoding="utf-8"))
        text = (folder / FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError(
            f"{folder} holds no study of trainings ({HEADER}): give the folder of raison study run."
        ) from None
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read the study in {folder}: {error}.") from None
    check_schema(header, folder / HEADER, SCHEMA)
    check_trainings(header, folder / HEADER)
    records, dropped = read_records(folder)
    return Trainings(folder, header, text, records, dropped)


def read_records(folder: Path) -> tuple[dict[Key, TrainingRecord], int]:
    """The records of all processes by key, and how many broken lines were left out. Raises DataError."""
    records: dict[Key, TrainingRecord] = {}
    dropped = 0
    for path in _stores(folder):
        stored = RecordStore(path).read()
        dropped += stored.dropped
        for line in stored.records:
            try:
                check_training(line)
                record = TrainingRecord.from_dict(line)
            except (DataError, KeyError, TypeError, ValueError, AttributeError):
                dropped += 1
                continue
            records[record.key] = record
    return records, dropped


def store_of(folder: Path, shard: int | None = None) -> RecordStore:
    """Where a process writes its records; `shard` is its number where several share the work."""
    return RecordStore(folder / (f"{KIND}.jsonl" if shard is None else f"{KIND}-{shard}.jsonl"))


def _stores(folder: Path) -> Sequence[Path]:
    # A committed file may be there compressed only; RecordStore finds it by the plain name.
    names = {path.name.removesuffix(".gz") for path in folder.glob(f"{KIND}*.jsonl*")}
    return [folder / name for name in sorted(names) if name.endswith(".jsonl")]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _value(value: Any) -> Value:
    return tuple(_number(part) for part in value) if isinstance(value, list) else _number(value)


def _number(value: Any) -> float:
    return math.nan if value is None else float(value)
