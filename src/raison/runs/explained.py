"""A run's explanations on disk: read on access, with an index of 8 bytes per text."""

from collections.abc import Container, Iterator, Sequence
from typing import overload

import numpy as np

from raison.core.errors import DataError
from raison.core.results.explanation import Explanation
from raison.core.settings.reading import Fields, json_value
from raison.jobs.store import RecordStore, StoredLine
from raison.runs.headers import TEXTS
from raison.runs.record_validation import check_key

_KEYS = b', "explanation": {'
"""The end of the keys in a line, so that an explanation's key is found without parsing it."""


class ExplanationOffsets:
    """The offset of each explanation by row and seed; the last one if a text was written twice.

    Only rows and seeds of `keys` and texts below `texts` count, which are the run's.
    """

    def __init__(self, store: RecordStore, texts: int, keys: Container[tuple[str, int]]) -> None:
        self._store = store
        self._texts = texts
        self._places: dict[tuple[str, int], np.ndarray] = {}
        for line in store.lines():
            with store.telling(line):
                key = _keys(line)
            if key is None or key[:2] not in keys or key[2] >= texts:
                continue
            if key[:2] not in self._places:
                self._places[key[:2]] = np.full(texts, -1, dtype=np.int64)
            self._places[key[:2]][key[2]] = line.place

    def there(self, row: str, seed: int) -> np.ndarray:
        """Which texts have an explanation, in order."""
        places = self._places.get((row, seed))
        return np.zeros(self._texts, dtype=np.bool_) if places is None else places >= 0

    def of_row(self, row: str, seed: int) -> "StoredExplanations":
        """The explanations that exist, in the order of the texts."""
        places = self._places.get((row, seed), np.empty(0, dtype=np.int64))
        return StoredExplanations(self._store, places[places >= 0])


class StoredExplanations(Sequence[Explanation]):
    """Explanations that are read on access."""

    def __init__(self, store: RecordStore, places: np.ndarray) -> None:
        self._store = store
        self._places = places

    @overload
    def __getitem__(self, index: int) -> Explanation: ...

    @overload
    def __getitem__(self, index: slice) -> list[Explanation]: ...

    def __getitem__(self, index: int | slice) -> Explanation | list[Explanation]:
        if isinstance(index, slice):
            return list(self._read(self._places[index]))
        return next(self._read(self._places[[index]]))

    def __iter__(self) -> Iterator[Explanation]:
        return self._read(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def _read(self, places: np.ndarray) -> Iterator[Explanation]:
        try:
            for record in self._store.at(places.tolist()):
                yield Explanation.from_dict(record["explanation"])
        except (DataError, OSError, ValueError, KeyError) as error:
            raise DataError(f"cannot read {self._store.path}: {error}.") from error


def _keys(line: StoredLine) -> tuple[str, int, int] | None:
    """Row, seed and text of a line; None for a truncated line."""
    head, separator, _ = line.content.partition(_KEYS)
    if not separator or not line.content.endswith(b"}}"):
        record = line.parsed()
    else:
        try:
            record = json_value(head + b"}")
        except ValueError:
            return None
    if record is None:
        return None
    check_key(Fields(record, "an explanation's line"), TEXTS)
    return record["row"], record["seed"], record["text"]
