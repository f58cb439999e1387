"""The records of a run as arrays, 8 bytes per number."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from raison.runs.record import Record, RecordKey
from raison.runs.summary import Costs, Value


class _StringPool:
    """Strings stored as small numbers, because few are distinct."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}

    def number(self, name: str) -> int:
        if name not in self._numbers:
            self._numbers[name] = len(self.names)
            self.names.append(name)
        return self._numbers[name]


@dataclass(slots=True)
class _RowScores:
    """One row of the table under one seed. `scores` has an array for every metric, (texts, parts)."""

    done: np.ndarray
    costs: np.ndarray
    words: np.ndarray
    scores: list[np.ndarray] = field(default_factory=list)
    single: list[bool] = field(default_factory=list)
    """Whether each metric's value is a number rather than a tuple of parts."""


class Columns(Mapping[RecordKey, Record]):
    """Records by row, seed and text; each is built on access."""

    def __init__(self, texts: int) -> None:
        self._texts = texts
        self._columns: dict[tuple[str, int], _RowScores] = {}
        self._names = _StringPool()

    def add(self, record: Record) -> None:
        """Store a record, replacing one with the same key."""
        column = self._columns.get((record.row, record.seed))
        if column is None:
            column = self._columns[record.row, record.seed] = self._new(record)
        for values, score in zip(column.scores, record.scores, strict=True):
            values[record.text] = score
        costs, number = record.costs, self._names.number
        column.costs[record.text] = (costs.evaluations, costs.gradients, costs.seconds)
        column.words[record.text] = (number(record.target), number(record.prediction), record.units)
        column.done[record.text] = True

    def done(self, row: str, seed: int) -> np.ndarray:
        """Which texts have a record, in their order."""
        column = self._columns.get((row, seed))
        return np.zeros(self._texts, dtype=np.bool_) if column is None else column.done

    def scores(self, row: str, seed: int, place: int, texts: np.ndarray) -> np.ndarray:
        """One metric's values of some texts, (texts, parts)."""
        return self._columns[row, seed].scores[place][texts]

    def costs(self, row: str, seed: int, texts: np.ndarray) -> np.ndarray:
        """Evaluations, gradients and seconds of some texts, (texts, 3)."""
        return self._columns[row, seed].costs[texts]

    def targets(self, row: str, seed: int, texts: np.ndarray) -> list[str]:
        """The targets of some texts."""
        return self._named(row, seed, texts, 0)

    def predictions(self, row: str, seed: int, texts: np.ndarray) -> list[str]:
        """The model's predictions for some texts."""
        return self._named(row, seed, texts, 1)

    def __contains__(self, key: object) -> bool:
        if not isinstance(key, tuple):
            return False
        row, seed, text = key
        column = self._columns.get((row, seed))
        return column is not None and text < len(column.done) and bool(column.done[text])

    def __getitem__(self, key: RecordKey) -> Record:
        if key not in self:
            raise KeyError(key)
        row, seed, text = key
        column = self._columns[row, seed]
        evaluations, gradients, seconds = column.costs[text].tolist()
        target, prediction, units = column.words[text].tolist()
        scores = zip(column.scores, column.single, strict=True)
        return Record(
            row,
            seed,
            text,
            tuple(_value(values[text], single) for values, single in scores),
            Costs(_whole(evaluations), _whole(gradients), seconds),
            self._names.names[target],
            self._names.names[prediction],
            units,
        )

    def __iter__(self) -> Iterator[RecordKey]:
        for (row, seed), column in self._columns.items():
            yield from ((row, seed, int(text)) for text in np.flatnonzero(column.done))

    def __len__(self) -> int:
        return sum(int(column.done.sum()) for column in self._columns.values())

    def _named(self, row: str, seed: int, texts: np.ndarray, word: int) -> list[str]:
        return [self._names.names[number] for number in self._columns[row, seed].words[texts, word].tolist()]

    def _new(self, record: Record) -> _RowScores:
        parts = [len(score) if isinstance(score, tuple) else 1 for score in record.scores]
        return _RowScores(
            done=np.zeros(self._texts, dtype=np.bool_),
            costs=np.zeros((self._texts, 3)),
            words=np.zeros((self._texts, 3), dtype=np.int64),
            scores=[np.full((self._texts, count), np.nan) for count in parts],
            single=[not isinstance(score, tuple) for score in record.scores],
        )


def _value(values: np.ndarray, single: bool) -> Value:
    parts = tuple(values.tolist())
    return parts[0] if single else parts


def _whole(count: float) -> float:
    """Counts as they were written: whole numbers without a point."""
    return int(count) if count.is_integer() else count
