"""One record of a run: an explanation's scores and its cost, and no text; and records read by their keys."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from raison.core.errors import DataError
from raison.jobs.store import RecordStore
from raison.runs.summary import Costs, Value

RecordKey = tuple[str, int, int]
"""Row, seed, text."""


class Keyed(Protocol):
    """A record with a key."""

    @property
    def key(self) -> tuple[Any, ...]:
        """The unique key of the record."""


R = TypeVar("R", bound=Keyed)


def read_keyed(store: RecordStore, make: Callable[[dict[str, Any]], R]) -> tuple[dict[Any, R], int]:
    """The records of all processes by key, and the number of lines left out: broken ones, and those that are no
    record."""
    stored = store.read()
    records, dropped = {}, stored.dropped
    for line in stored.records:
        try:
            record = make(line)
        except (DataError, KeyError, TypeError, ValueError, AttributeError):
            dropped += 1
            continue
        records[record.key] = record
    return records, dropped


@dataclass(frozen=True, slots=True)
class Record:
    """One explanation's scores by the run's metrics of single texts, in their order, and its cost."""

    row: str
    seed: int
    text: int
    scores: tuple[Value, ...]
    costs: Costs
    target: str
    prediction: str
    units: int

    @property
    def key(self) -> RecordKey:
        return (self.row, self.seed, self.text)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; NaN becomes None."""
        return {
            "row": self.row,
            "seed": self.seed,
            "text": self.text,
            "scores": [plain(score) for score in self.scores],
            "evaluations": self.costs.evaluations,
            "gradients": self.costs.gradients,
            "seconds": self.costs.seconds,
            "target": self.target,
            "prediction": self.prediction,
            "units": self.units,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Record":
        """The inverse of `to_dict`."""
        costs = Costs(data["evaluations"], data["gradients"], data["seconds"])
        scores = tuple(number(score) for score in data["scores"])
        return cls(
            data["row"], data["seed"], data["text"], scores, costs, data["target"], data["prediction"], data["units"]
        )


def plain(value: Value) -> Any:
    if isinstance(value, tuple):
        return [plain(part) for part in value]
    return None if math.isnan(value) else value


def number(value: Any) -> Value:
    return tuple(scalar(part) for part in value) if isinstance(value, list) else scalar(value)


def scalar(value: Any) -> float:
    return math.nan if value is None else float(value)
