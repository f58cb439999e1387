"""Results that are kept for a while, so that memory does not grow with the number of texts."""

from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Newest(Generic[K, V]):
    """A mapping of the `most` keys that were added last. Threads may share it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = Lock()
        self._values: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """The value of a key; None if it was never added, or is no longer kept."""
        return self._values.get(key)

    def add(self, key: K, value: V) -> None:
        """Keep a value. A key that is added again counts as new."""
        with self._lock:
            self._values.pop(key, None)
            self._values[key] = value
            if len(self._values) > self._most:
                del self._values[next(iter(self._values))]

    def items(self) -> list[tuple[K, V]]:
        """All of them, oldest first."""
        with self._lock:
            return list(self._values.items())
