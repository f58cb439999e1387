"""JSON Lines and JSON files that survive kills and full disks and detect changes by checksums."""

import glob
import gzip
import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from raison.core.errors import DataError
from raison.core.settings.reading import json_value
from raison.jobs import disk

_SUM = "crc32"
_SHIFT = 44
_OFFSET = (1 << _SHIFT) - 1
"""A place combines the file's number (upper bits) with the offset in the file (lower bits)."""
_SUMMED = re.compile(rb',?\s*"crc32": "([0-9a-f]{8})"\s*\}$')
LONGEST = 1 << 28
"""Most bytes of a line, and of what a compressed file of one object unpacks to: it could claim any memory."""
_ENDING = 64
"""Bytes at the end of a line that contain its checksum."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The records of a store, and the number of broken lines that were skipped."""

    records: tuple[dict[str, Any], ...]
    dropped: int


@dataclass(frozen=True, slots=True)
class StoredLine:
    """A line of a store, without its checksum, which matched.

    `number` counts the lines of the file `path` from 1; `place` is where the line begins, for `RecordStore.at`.
    """

    path: Path
    number: int
    place: int
    content: bytes

    def parsed(self) -> dict[str, Any] | None:
        """The record; None for a truncated line or one that is not a JSON object."""
        try:
            value = json_value(self.content)
        except ValueError:
            return None
        return value if isinstance(value, dict) else None


@dataclass(frozen=True, slots=True)
class RecordStore:
    """One JSON object per line. Lines are only ever added, whole, and are on the disk when `append` returns.

    Each ends with the checksum (CRC-32) of the text before it, so that changes on the disk are noticed. Lines of older
    versions without one are also read. Processes that share the work write their own files, records-1.jsonl,
    records-2.jsonl, ..., by their number `shard`; reading covers all of them.
    """

    path: Path
    shard: int | None = None

    def append(self, records: Iterable[dict[str, Any]]) -> None:
        """Add records, all in one write.

        Raises DataError if they cannot be written (such as on a full disk). Earlier records stay, and a partial write
        is undone.
        """
        lines = [_summed(json.dumps(record, ensure_ascii=False, allow_nan=False)) for record in records]
        if lines:
            disk.append(self._of(self.shard or 0), b"".join(lines))

    def read(self) -> Stored:
        """All complete records; a line that a kill cut short, or that is not a JSON object, is counted and left out.

        A missing file holds nothing; a compressed file (.gz) is read in its place, if there is one. Raises DataError if
        it cannot be read, or a line was changed.
        """
        parsed = [line.parsed() for line in self.lines()]
        records = tuple(record for record in parsed if record is not None)
        return Stored(records, len(parsed) - len(records))

    def lines(self) -> Iterator[StoredLine]:
        """Like `read`, but one unparsed line at a time, so that memory does not grow with the file."""
        for shard in self._shards():
            path, offset = self._of(shard), 0
            try:
                with _opened(path) as file:
                    for number, line in enumerate(_lines(path, file), start=1):
                        if line.strip():
                            content = _checked(path, line.rstrip(b"\r\n"), f"line {number}")
                            yield StoredLine(path, number, shard << _SHIFT | offset, content)
                        offset += len(line)
            except FileNotFoundError:
                continue
            except (OSError, EOFError, zlib.error) as error:
                raise DataError(f"cannot read {path}: {error}.") from error

    @contextmanager
    def telling(self, line: StoredLine) -> Iterator[None]:
        """Add the file and the line number to a DataError raised inside."""
        try:
            yield
        except DataError as error:
            raise DataError(f"{line.path}, line {line.number}: {error}") from None

    def at(self, places: Iterable[int]) -> Iterator[dict[str, Any]]:
        """The records that begin there. Raises DataError if one does not, was changed, or cannot be read."""
        with ExitStack() as held:
            files: dict[int, BinaryIO] = {}
            for place in places:
                shard, offset = place >> _SHIFT, place & _OFFSET
                path = self._of(shard)
                try:
                    if shard not in files:
                        files[shard] = held.enter_context(_opened(path))
                    files[shard].seek(offset)
                    line = _line(path, files[shard])
                except (OSError, EOFError, zlib.error) as error:
                    raise DataError(f"cannot read {path}: {error}.") from error
                where = f"byte {offset:,}"
                record = StoredLine(path, 0, place, _checked(path, line.rstrip(b"\r\n"), where)).parsed()
                if record is None:
                    raise DataError(f"{path}, {where}: no record begins there; the file was changed.")
                yield record

    def _of(self, shard: int) -> Path:
        return self.path.with_name(f"{self.path.stem}-{shard}{self.path.suffix}") if shard else self.path

    def _shards(self) -> list[int]:
        """The numbers of the existing files; 0 is the file of an unshared run."""
        name = re.compile(rf"{re.escape(self.path.stem)}(?:-(\d+))?{re.escape(self.path.suffix)}(?:\.gz)?")
        there = [name.fullmatch(path.name) for path in self.path.parent.glob(f"{glob.escape(self.path.stem)}*")]
        return sorted({int(match[1] or 0) for match in there if match is not None})


def _lines(path: Path, file: BinaryIO) -> Iterator[bytes]:
    while line := _line(path, file):
        yield line


def _line(path: Path, file: BinaryIO) -> bytes:
    """The next line; b"" at the end. Raises DataError for one that is too long."""
    line = file.readline(LONGEST + 1)
    if len(line) > LONGEST:
        raise DataError(f"{path} has a line of more than {LONGEST >> 20} MiB, which no record needs: restore the file.")
    return line


def _opened(path: Path) -> BinaryIO:
    stored = _stored(path)
    return path.open("rb") if stored == path else gzip.open(stored, "rb")  # type: ignore[return-value]


def _stored(path: Path) -> Path:
    """The file, or its compressed version (.gz) if only that exists."""
    packed = path.with_name(path.name + ".gz")
    return packed if packed.exists() and not path.exists() else path


def _checked(path: Path, line: bytes, where: str) -> bytes:
    content = _unsummed(line)
    if content is None:
        raise DataError(
            f"{path}, {where}: the record was changed after it was written (its checksum does not "
            "match). Restore the file, or delete the line and start again to repeat its work."
        )
    return content


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    """Write a file that holds one record, whole, with its checksum. Raises DataError when it cannot be written."""
    disk.write_whole(path, _summed(json.dumps(record, ensure_ascii=False)))


def write_head(path: Path, content: Mapping[str, Any]) -> None:
    """Write the first file of a folder, readable for people: a line for each value, and its checksum."""
    values = json.dumps(content, ensure_ascii=False, indent=1).removesuffix("\n}")
    disk.write_whole(path, f'{values},\n "{_SUM}": "{_sum_of(values.encode() + b"}")}"\n}}\n')


def read_record(path: Path) -> dict[str, Any] | None:
    """What `write_record` wrote; None if there is no such file. Files of older versions have no checksum.

    A file that exists only compressed (.gz) is read, too. Raises DataError for a broken one, with the way to rebuild
    it.
    """
    try:
        return _object_in(path)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def read_head(path: Path) -> dict[str, Any] | None:
    """What `write_head` wrote; None if there is no such file. Files of older versions have no checksum.

    Raises DataError for one that is broken.
    """
    try:
        return _object_in(path)
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path} ({error}): restore it, or start again in another folder.") from None


def _object_in(path: Path) -> dict[str, Any] | None:
    """The file's single object; None without the file. Raises OSError, and ValueError with the reason."""
    try:
        most = max(LONGEST, _stored(path).stat().st_size)
        with _opened(path) as file:
            whole = file.read(most + 1)
    except FileNotFoundError:
        return None
    except (EOFError, zlib.error) as error:
        raise ValueError(str(error)) from error
    if len(whole) > most:
        raise ValueError(f"it unpacks to more than {most >> 20} MiB")
    content = _unsummed(whole.strip())
    parsed_content = None if content is None else json_value(content)
    if content is None or (isinstance(parsed_content, dict) and _SUM in parsed_content):
        raise ValueError("it was changed after it was written: its checksum does not match")
    if not isinstance(parsed_content, dict):
        raise ValueError("it does not hold a JSON object")
    return parsed_content


def unreadable(path: Path, why: object) -> DataError:
    """The error text for a broken file that can be rebuilt from its folder."""
    return DataError(
        f"cannot read {_stored(path)} ({why}): delete it and run the same command again (a study with --resume) to "
        "rebuild it."
    )


def _unsummed(line: bytes) -> bytes | None:
    """A line without its checksum, if it has one; None if the two do not match."""
    match = _SUMMED.search(line, max(0, len(line) - _ENDING))
    if match is None:
        return line
    content = line[: match.start()] + b"}"
    return content if _sum_of(content) == match[1].decode() else None


def _summed(line: str) -> bytes:
    # A lone surrogate, as in a text that was cut within a character, becomes a JSON escape.
    content = line.encode("utf-8", "backslashreplace")
    comma = b", " if len(content) > len(b"{}") else b""
    return content[:-1] + comma + f'"{_SUM}": "{_sum_of(content)}"}}\n'.encode()


def _sum_of(content: bytes) -> str:
    return f"{zlib.crc32(content):08x}"
