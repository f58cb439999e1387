"""Folders below a named one: nothing outside of it is read."""

import os
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

DEPTH = 4
"""Maximum number of folders below the named one that are searched."""
MOST = 500
"""Maximum number of listed folders."""

State = tuple[tuple[str, int, int], ...]


def below(root: Path, markers: Collection[str]) -> Iterator[tuple[str, Path]]:
    """Folders with one of these files, by their paths below the root; no link is followed to them.

    Folders whose names are not UTF-8, which no answer could state, are left out.
    """
    count = 0
    for path, folders, files in os.walk(root):
        folder = Path(path)
        depth = len(folder.relative_to(root).parts)
        folders[:] = sorted(filter(_is_listed, folders)) if depth < DEPTH else []
        if not set(markers).isdisjoint(files):
            yield folder.relative_to(root).as_posix(), folder
            count += 1
        if count >= MOST:
            return


def _is_listed(name: str) -> bool:
    return not name.startswith(".") and not any("\ud800" <= letter <= "\udfff" for letter in name)


def inside(folder: Path, root: Path, files: Iterable[Path]) -> bool:
    """Whether a folder and its files lie below the root after following links; not so if links form a circle."""
    try:
        return all(path.resolve().is_relative_to(root) for path in (folder, *files))
    except (OSError, RuntimeError):
        return False


def state_of(files: Iterable[Path]) -> State:
    """A value that stays equal as long as the files are unchanged; of a file that is gone, or a link without one, the
    path alone."""
    return tuple(sorted(map(_state_of_file, files)))


def _state_of_file(path: Path) -> tuple[str, int, int]:
    try:
        stat = path.stat()
    except OSError:
        return str(path), 0, 0
    return str(path), stat.st_mtime_ns, stat.st_size
