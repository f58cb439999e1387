"""One record of a run: an explanation's scores and its cost, and no text."""

import math
from dataclasses import dataclass
from typing import Any

from raison.runs.summary import Costs, Value

RecordKey = tuple[str, int, int]
"""Row, seed, text."""


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
