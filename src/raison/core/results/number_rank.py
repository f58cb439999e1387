"""The rank of a model's number among those of all texts of one call, with their mean and spread."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

from raison.core.note_names import AMONG
from raison.core.settings.reading import Fields

FEWEST = 3
"""Minimum count of numbers for a meaningful spread."""


@dataclass(frozen=True, slots=True)
class NumberRank:
    """The highest number has rank 1. `sd` is the standard deviation of the numbers of all texts, this one included."""

    rank: int
    texts: int
    mean: float
    sd: float

    @classmethod
    def of(cls, value: float, values: Sequence[float]) -> "NumberRank":
        """The rank of one of at least two values."""
        return cls(1 + sum(other > value for other in values), len(values), mean(values), stdev(values))

    @classmethod
    def read(cls, note: Mapping[str, Any]) -> "NumberRank":
        """From the note."""
        return cls(int(note["rank"]), int(note["texts"]), float(note["mean"]), float(note["sd"]))

    def distance(self, value: float) -> float:
        """How many standard deviations the value lies above the mean; 0 where all are equal."""
        return (value - self.mean) / self.sd if self.sd else 0.0


def check(data: Any, what: str) -> None:
    """DataError for an invalid note."""
    notes = Fields({AMONG: data}, what)
    notes.mapping(AMONG)
    values = Fields(data, f"{what}: {AMONG}")
    values.whole("rank", 1)
    values.whole("texts", 1)
    values.number("mean")
    values.number("sd", 0.0)
