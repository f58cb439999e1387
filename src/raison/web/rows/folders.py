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
    """Folders with one of these files, by their paths below the root; no link is followed to them."""
    count = 0
    for path, folders, files in os.walk(root):
        folder = Path(path)
        depth = len(folder.relative_to(root).parts)
        folders[:] = sorted(name for name in folders if not name.startswith(".")) if depth < DEPTH else []
        if not set(markers).isdisjoint(files):
            yield folder.relative_to(root).as_posix(), folder
            count += 1
        if count >= MOST:
            return


def inside(folder: Path, root: Path, files: Iterable[Path]) -> bool:
    """Whether a folder and its files lie below the root after following links."""
    return all(path.resolve().is_relative_to(root) for path in (folder, *files))


def state_of(files: Iterable[Path]) -> State:
    """A value that stays equal as long as the files are unchanged."""
    return tuple(sorted((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in files))
