"""Servers' answers on disk, by request, so that no request is sent twice."""

import hashlib
import json
import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from raison.core.errors import DataError

_TABLE = "CREATE TABLE IF NOT EXISTS answers (asked TEXT PRIMARY KEY, answer TEXT NOT NULL) WITHOUT ROWID"


class Store:
    """An SQLite file, which several processes may share. It holds prompts as digests, and answers as received."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = Lock()
        with self._errors():
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
            self._file.execute("PRAGMA journal_mode=WAL")
            self._file.execute(_TABLE)
            weakref.finalize(self, self._file.close)

    def find(self, key: str) -> dict[str, Any] | None:
        """The answer to the request of a key; None if it was never sent."""
        with self._lock, self._errors():
            row = self._file.execute("SELECT answer FROM answers WHERE asked = ?", (key,)).fetchone()
            return None if row is None else json.loads(row[0])

    def keep(self, key: str, answer: dict[str, Any]) -> None:
        """Store an answer; if two processes sent the same request, the first answer stays."""
        with self._lock, self._errors():
            self._file.execute("INSERT OR IGNORE INTO answers VALUES (?, ?)", (key, json.dumps(answer)))

    def remove(self, key: str) -> None:
        """Remove an answer."""
        with self._lock, self._errors():
            self._file.execute("DELETE FROM answers WHERE asked = ?", (key,))

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Inside, errors of the file become DataErrors."""
        try:
            yield
        except (sqlite3.Error, OSError, ValueError) as error:
            raise DataError(
                f"the store of answers {self.path} cannot be used ({error}): set RAISON_CACHE to a writable folder, or "
                "load with served=raison.Served(remember=False)."
            ) from None


def key_of(*parts: object) -> str:
    """A digest of a request."""
    serialized = json.dumps(parts, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(serialized.encode()).hexdigest()
