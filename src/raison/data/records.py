"""An append-only file of JSON lines that survives kills and full disks."""

import errno
import gzip
import json
import os
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raison.core.errors import DataError


@dataclass(frozen=True, slots=True)
class Stored:
    """What a store holds: its records, and how many broken lines were left out."""

    records: tuple[dict[str, Any], ...]
    dropped: int


@dataclass(frozen=True, slots=True)
class RecordStore:
    """One JSON object per line. Lines are only ever added, whole, and are on the disk when `append` returns."""

    path: Path

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        """Add records, all in one write.

        Raises DataError when they cannot be written (such as a full disk). What was there before stays; of these
        records then none counts, for a part that was written is cut off again.
        """
        lines = [json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n" for record in records]
        if not lines:
            return
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab", buffering=0) as file:
                self._write(file.fileno(), "".join(lines).encode())
        except OSError as error:
            raise DataError(_explained(self.path, error)) from error

    def read(self) -> Stored:
        """All whole records; a line that a kill cut short, or that is no JSON object, is counted and left out.

        A file that does not exist yet holds nothing; where it is there compressed (.gz) that is read.
        Raises DataError if it cannot be read.
        """
        packed = self.path.with_name(self.path.name + ".gz")
        try:
            if packed.exists() and not self.path.exists():
                content = gzip.decompress(packed.read_bytes())
            else:
                content = self.path.read_bytes()
        except FileNotFoundError:
            return Stored((), 0)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"cannot read {self.path}: {error}.") from error
        lines = [line for line in content.split(b"\n") if line.strip()]
        found = [_parsed(line) for line in lines]
        records = tuple(record for record in found if record is not None)
        return Stored(records, len(found) - len(records))

    def _write(self, file: int, content: bytes) -> None:
        size = os.lseek(file, 0, os.SEEK_END)
        if size and not self._ends_whole(size):
            # A kill cut the last line: what follows must not be glued to it.
            content = b"\n" + content
        try:
            written = 0
            while written < len(content):
                written += os.write(file, content[written:])
            os.fsync(file)
        except OSError:
            os.ftruncate(file, size)
            raise

    def _ends_whole(self, size: int) -> bool:
        with self.path.open("rb") as file:
            file.seek(size - 1)
            return file.read(1) == b"\n"


def write_whole(path: Path, text: str) -> None:
    """Write a file so that whoever finds it finds all of it. Raises DataError when it cannot be written."""
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text(text, encoding="utf-8")
        os.replace(part, path)
    except OSError as error:
        raise DataError(_explained(path, error)) from error


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _explained(path: Path, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"no space left on the disk of {path}. The records written before are whole; "
            "make room and start again, and the work goes on where it was."
        )
    return f"cannot write to {path}: {error.strerror or error}. The records written before are whole."
