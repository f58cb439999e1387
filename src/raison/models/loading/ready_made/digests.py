"""Integrity of a folder's files: their digests, cached by file identity."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from raison.core.errors import DataError
from raison.jobs.disk import PART, write_whole
from raison.jobs.file_digest import sha256_of

FILE = "checked.json"


@dataclass(frozen=True, slots=True)
class Seen:
    """A file's sha256, and its identity at that time: device, inode, size in bytes, time of change in ns."""

    sha256: str
    identity: tuple[int, ...]


def record(folder: Path) -> None:
    """Record the digest of every file of the folder, in the folder itself."""
    _write(folder, {path.name: Seen(sha256_of([path]), _identity(path)) for path in _files(folder)})


def changed(folder: Path, pinned: Mapping[str, str]) -> str:
    """A description of files that do not match the record; "" if all match.

    `pinned` has the sha256 that files must have whatever was recorded. A file with an unchanged identity is not read
    again, so a second check is cheap. A folder without a record, copied there by hand, gets one now. Whoever can write
    to the folder can also write a record: this finds damage and accidental changes, not an attack.
    """
    known = _read(folder)
    seen: dict[str, Seen] = {}
    for path in _files(folder):
        name, identity = path.name, _identity(path)
        before = known.get(name)
        if before is not None and before.identity == identity and pinned.get(name, before.sha256) == before.sha256:
            seen[name] = before
            continue
        if known and before is None:
            return f"{name} was not among the files that were fetched"
        now = sha256_of([path])
        expected = pinned.get(name) or (before.sha256 if before else now)
        if now != expected:
            return f"{name} has the sha256 {now[:12]}... instead of {expected[:12]}... (damaged or changed)"
        seen[name] = Seen(now, identity)
    if seen != known:
        # Files of a read-only folder are read again each time.
        with suppress(DataError):
            _write(folder, seen)
    return ""


def _files(folder: Path) -> list[Path]:
    # Another process may be writing its record, or a killed one have left a part of it.
    return sorted(path for path in folder.iterdir() if path.is_file() and path.name != FILE and path.suffix != PART)


def _identity(path: Path) -> tuple[int, ...]:
    stat = path.stat()
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns


def _read(folder: Path) -> dict[str, Seen]:
    try:
        content = json.loads((folder / FILE).read_text(encoding="utf-8"))
        return {name: Seen(str(seen["sha256"]), tuple(seen["identity"])) for name, seen in content.items()}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}


def _write(folder: Path, files: Mapping[str, Seen]) -> None:
    write_whole(folder / FILE, json.dumps({name: asdict(seen) for name, seen in files.items()}, indent=1) + "\n", "")
