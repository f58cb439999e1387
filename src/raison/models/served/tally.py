"""What all processes of a run have spent on a server, counted in one file."""

import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path

from raison.core.errors import DataError
from raison.models.served.answer_store import key_of

_TABLE = (
    "CREATE TABLE IF NOT EXISTS counts (name TEXT PRIMARY KEY, requests INTEGER, tokens_in INTEGER, tokens_out INTEGER)"
)
_FIND = "SELECT requests, tokens_in, tokens_out FROM counts WHERE name = ?"
_KEEP = "INSERT OR REPLACE INTO counts VALUES (?, ?, ?, ?)"


@dataclass(slots=True)
class RequestCount:
    """Requests, and the tokens that were read and written."""

    requests: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def add(self, other: "RequestCount") -> None:
        """Add another count, which may be below zero."""
        self.requests += other.requests
        self.tokens_in += other.tokens_in
        self.tokens_out += other.tokens_out


class Tally:
    """A count in an SQLite file, under a name; all processes that open the same folder and name share it."""

    def __init__(self, folder: Path, *name: object) -> None:
        self._name = key_of(*name)
        self._folder = folder
        with self._said():
            self._file = sqlite3.connect(
                folder / "tally.sqlite", timeout=60, isolation_level=None, check_same_thread=False
            )
            weakref.finalize(self, self._file.close)
            # The file need not survive a restart of the machine.
            self._file.execute("PRAGMA synchronous=OFF")
            self._file.execute(_TABLE)

    @contextmanager
    def held(self) -> Iterator[RequestCount]:
        """The count so far, for one process at a time. Its value on leaving is stored, unless an error occurs.

        Raises DataError if the file cannot be read or written.
        """
        with self._said():
            self._file.execute("BEGIN IMMEDIATE")
        try:
            with self._said():
                count = RequestCount(*(self._file.execute(_FIND, (self._name,)).fetchone() or ()))
            yield count
            with self._said():
                self._file.execute(_KEEP, (self._name, *astuple(count)))
                self._file.execute("COMMIT")
        except BaseException:
            # After an error of its own, SQLite may have ended the transaction already.
            if self._file.in_transaction:
                self._file.execute("ROLLBACK")
            raise

    @contextmanager
    def _said(self) -> Iterator[None]:
        """Inside, SQLite's errors become DataErrors."""
        try:
            yield
        except sqlite3.Error as error:
            raise DataError(
                f"requests cannot be counted in {self._folder} ({error}): set TMPDIR to another folder."
            ) from None
