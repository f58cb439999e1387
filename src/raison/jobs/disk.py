"""The only module that writes for long work: files are complete and synced when a call returns.

A file is written as .part in the folder of its destination, synced, and moved there; then the folder is synced. A kill
leaves the old file or the new one, and perhaps a part, which `sweep` removes. Tests cut every call of `os` here.
"""

import errno
import os
import re
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from raison.core.errors import DataError

PART = ".part"
RECORDS = "Records written so far are intact."
"""What an error of work that can be resumed ends with."""
_NUMBERS = count()
_OWN_PART = re.compile(rf"\..+\.\d+\.\d+{re.escape(PART)}", re.DOTALL)
"""The names that `_part_of` makes."""
_UNLINKED = getattr(os, "O_NOFOLLOW", 0)
"""The flag for opening no link; Windows has none."""


def write_whole(path: Path, content: str | bytes, kept: str = RECORDS) -> None:
    """Write a file atomically; lone surrogates become escapes.

    Raises DataError if it cannot be written; it ends with what is `kept`.
    """
    with whole_file(path, kept) as part, explained(path, kept):
        file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        try:
            _write_all(file, _bytes(content))
        finally:
            os.close(file)


def write_named(path: Path, content: str | bytes) -> None:
    """Write a file that a person named: a link is followed, and a device or a pipe is written to, not replaced.

    Raises DataError if it cannot be written.
    """
    with explained(path, ""):
        # A pipe such as /dev/stdout exists, but its link does not lead to a path.
        if path.exists() and not path.is_file() and not path.is_dir():
            with path.open("wb") as file:
                file.write(_bytes(content))
            return
        there = Path(os.path.realpath(path))
    write_whole(there, content, "")


@contextmanager
def whole_file(path: Path, kept: str = RECORDS) -> Iterator[Path]:
    """A temporary name for other libraries to write to; the file is moved into place when the context closes.

    The permissions of the file that it replaces stay.
    """
    part = path.with_name(_part_of(path.name))
    with explained(path, kept):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Other libraries would follow a link that has the name of the part.
        if os.path.lexists(part):
            os.unlink(part)
        try:
            yield part
            _place(part, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(part)
            raise
        _sync(path.parent)


@contextmanager
def whole_files(folder: Path) -> Iterator[Path]:
    """The same for several files: a folder to write them to inside, from which each is moved when the context closes.

    Existing files stay or are replaced, one after the other, in the order of their names.
    """
    part = folder / _part_of("files")
    with explained(folder):
        # A killed process of the same number may have left one.
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        try:
            yield part
            for path in sorted(path for path in part.rglob("*") if path.is_file()):
                target = folder / path.relative_to(part)
                target.parent.mkdir(parents=True, exist_ok=True)
                _place(path, target)
                _sync(target.parent)
        finally:
            shutil.rmtree(part, ignore_errors=True)


def append(path: Path, content: bytes) -> None:
    """Append whole lines to a file, which must not be a link. On DataError, the file is unchanged."""
    with explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        new = not path.exists()
        with open(path, "ab", buffering=0, opener=_open_unlinked) as file:
            _append(path, file.fileno(), content)
        if new:
            _sync(path.parent)


def remove(path: Path) -> None:
    """Remove a file, or a folder with its contents, if it exists; of a link, only the link. Raises DataError."""
    with explained(path):
        if path.is_dir() and not path.is_symlink():
            for inside in sorted(path.iterdir()):
                remove(inside)
            os.rmdir(path)
        elif os.path.lexists(path):
            os.unlink(path)
            _sync(path.parent)


def sweep(folder: Path) -> None:
    """Remove partly written files of a killed process. The caller must hold the folder's lock."""
    for part in sorted(folder.rglob(f".*{PART}")):
        if _OWN_PART.fullmatch(part.name):
            remove(part)


@contextmanager
def explained(path: Path, kept: str = RECORDS) -> Iterator[None]:
    """Raise DataError with one line for a full disk or missing write permission, and what is `kept`."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            again = "start again to resume" if kept else "start again"
            failed = [f"no space left on the disk of {path}.", kept, f"Free some space and {again}."]
        elif error.errno == errno.ELOOP:
            failed = [f"cannot write to {path}: it is a link. Put a copy of the file that it leads to there.", kept]
        else:
            failed = [f"cannot write to {path}: {error.strerror or error}.", kept]
        raise DataError(" ".join(filter(None, failed))) from error


def _part_of(name: str) -> str:
    """A name that no other process or thread uses meanwhile; readers of whole folders skip names that begin
    with a full stop."""
    return f".{name}.{os.getpid()}.{next(_NUMBERS)}{PART}"


def _open_unlinked(path: str, flags: int) -> int:
    return os.open(path, flags | _UNLINKED, 0o666)


def _append(path: Path, file: int, content: bytes) -> None:
    size = os.lseek(file, 0, os.SEEK_END)
    if size and not _ends_whole(path, size):
        # A kill cut the last line: new content must start on a new one.
        content = b"\n" + content
    try:
        _write_all(file, content)
        os.fsync(file)
    except OSError:
        os.ftruncate(file, size)
        raise


def _bytes(content: str | bytes) -> bytes:
    return content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content


def _write_all(file: int, content: bytes) -> None:
    written = 0
    while written < len(content):
        written += os.write(file, content[written:])


def _place(part: Path, path: Path) -> None:
    # A file written by another library may not be on the disk yet; opened for writing, as Windows requires.
    file = os.open(part, os.O_RDWR)
    try:
        os.fsync(file)
    finally:
        os.close(file)
    if path.is_file():
        os.chmod(part, stat.S_IMODE(path.stat().st_mode))
    os.replace(part, path)


def _sync(folder: Path) -> None:
    """Sync a folder's directory entry; Windows has no such call."""
    if sys.platform == "win32":
        return
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _ends_whole(path: Path, size: int) -> bool:
    with path.open("rb") as file:
        file.seek(size - 1)
        return file.read(1) == b"\n"
