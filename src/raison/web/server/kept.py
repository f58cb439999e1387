"""Results of the most recently used requests, up to a number of bytes."""

import threading
from collections import OrderedDict

OVERHEAD = 256
"""Bytes of an entry besides its answer, about."""


class Kept:
    """Answers by their key. Every method may be called by any thread."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes = 0
        self._answers: OrderedDict[bytes, bytes] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """Bytes that the answers take."""
        return self._bytes

    def get(self, key: bytes) -> bytes | None:
        """The answer of a key, which is then the latest used."""
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
            return self._answers.get(key)

    def put(self, key: bytes, answer: bytes) -> None:
        """Keep an answer, in place of those that were not used for longest."""
        size = len(answer) + OVERHEAD
        with self._lock:
            if size > self._most or key in self._answers:
                return
            self._answers[key] = answer
            self._bytes += size
            while self._bytes > self._most:
                _, dropped = self._answers.popitem(last=False)
                self._bytes -= len(dropped) + OVERHEAD
