"""Results of the most recently used requests, up to a number of bytes."""

import threading
from collections import OrderedDict

OVERHEAD = 256
"""Approximate number of bytes of an entry besides its answer."""


class AnswerCache:
    """Answers by their keys. All methods may be called from any thread."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._bytes = 0
        self._answers: OrderedDict[bytes, bytes] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """The size of the answers in bytes."""
        return self._bytes

    def get(self, key: bytes) -> bytes | None:
        """The answer of a key, which becomes the most recently used."""
        with self._lock:
            if key in self._answers:
                self._answers.move_to_end(key)
            return self._answers.get(key)

    def put(self, key: bytes, answer: bytes) -> None:
        """Store an answer, in place of the least recently used ones."""
        size = len(answer) + OVERHEAD
        with self._lock:
            if size > self._most or key in self._answers:
                return
            self._answers[key] = answer
            self._bytes += size
            while self._bytes > self._most:
                _, dropped = self._answers.popitem(last=False)
                self._bytes -= len(dropped) + OVERHEAD
