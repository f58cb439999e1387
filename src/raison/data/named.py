"""Data sets known by name: the contents of a file of the folder `sets`, and how a data set is found and read."""

import importlib
import os
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from raison.core.errors import DataError, RaisonError, UnknownNameError
from raison.core.registry import imported, path_of
from raison.data.dataset import BrokenLine, Dataset
from raison.data.rows import Entry, collect
from raison.jobs.file_digest import sha256_of

ROOT_VARIABLE = "RAISON_DATA"
"""The environment variable that names the folder with the data sets' folders."""

DEFAULT_ROOT = Path("../shared/data")
NO_GOLD_LABEL = -1

Reader = Callable[[tuple[Path, ...]], Iterator[Entry]]
"""Reads a split's files, row by row; labels are class numbers, counted from 0."""


@dataclass(frozen=True, slots=True)
class Split:
    """One split: its files in the data set's folder with their reader, and its name on the Hub.

    `hub` is ("owner/name" or "owner/name:configuration", split), or None if the Hub does not have these rows.
    """

    files: tuple[str, ...]
    read: Reader
    hub: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class NamedSet:
    """A data set that the library knows.

    `folder` is its path under the data root; `labels` are the classes in the order of their numbers; `never_with`
    names the sets that share texts with it: never train on one and test on the other.
    """

    folder: str
    labels: tuple[str, ...]
    splits: Mapping[str, Split]
    citation: str
    note: str = ""
    never_with: tuple[str, ...] = ()


class _Sets(Mapping[str, NamedSet]):
    """The named data sets: a file is imported when its set is requested, so a broken one stops no other."""

    def __init__(self, package: str) -> None:
        path = importlib.import_module(package).__path__
        self._package, self._names = package, sorted(module.name for module in pkgutil.iter_modules(path))

    def __getitem__(self, name: str) -> NamedSet:
        if name not in self._names:
            raise KeyError(name)
        module = f"{self._package}.{name}"
        found = getattr(imported(module), "SET", None)
        if not isinstance(found, NamedSet):
            raise DataError(f"{path_of(module)} has no data set: a file of this folder has a constant SET, a NamedSet.")
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


@cache
def named() -> Mapping[str, NamedSet]:
    """Every named data set: one per file of the folder `sets`, under the file's name.

    To ask for one raises InputError or DataError, which name the file, if this cannot be used.
    """
    return _Sets("raison.data.sets")


def _readable() -> Iterator[tuple[str, NamedSet]]:
    """The sets whose files can be used, with their names."""
    for name in named():
        with suppress(RaisonError):
            yield name, named()[name]


def shared(trained: str, tested: str) -> str | None:
    """The reason why a model trained on one data set must not be tested on another; None if it may be.

    Both are names of datasets, as `load_named` gives them ("mr/train", whatever follows), or names of files in a data
    set's folder.
    """
    apart = {other for one in _sets_of(trained) for other in named()[one].never_with} & _sets_of(tested)
    if not apart:
        return None
    both = " and ".join(sorted(apart))
    return (
        f"{both} shares texts with {trained.partition('/')[0]}, on which the model was trained: test it on other data."
    )


def _sets_of(name: str) -> set[str]:
    """The data sets that a dataset's name may refer to."""
    first = name.partition("/")[0]
    return {known for known, one in _readable() if first in (known, Path(one.folder).parts[0])}


def same_texts(trained: Mapping[str, str], data: Dataset) -> bool:
    """Whether a record of training data ("name", "sha256") is of the same split of a named data set, or the same file.

    A split's name decides where both are known: the splits of some sets are parts of the same files.
    """
    splits = _splits_of(trained.get("name", "")), _splits_of(data.name)
    if all(splits):
        return bool(splits[0] & splits[1])
    return bool(data.sha256) and data.sha256 == trained.get("sha256")


def _splits_of(name: str) -> set[tuple[str, str]]:
    """The splits that a dataset's name may refer to: "sst2/train", whatever follows, or a file of a set's folder."""
    first, _, rest = re.split(r", | \(", name, maxsplit=1)[0].partition("/")
    return {
        (one, split)
        for one in _sets_of(name)
        for split, held in named()[one].splits.items()
        if (one, split) == (first, rest) or [Path(file).name for file in held.files] == [rest]
    }


def name_of_folder(path: Path) -> str:
    """The data set whose folder this is, by the path's last parts. Raises DataError if there is none, or several."""
    parts = path.resolve().parts
    fitting = {name: len(Path(s.folder).parts) for name, s in _readable() if _ends_with(parts, s.folder)}
    longest = [name for name, length in fitting.items() if length == max(fitting.values())]
    if len(longest) == 1:
        return longest[0]
    if longest:
        raise DataError(f"{path} holds several data sets: give one of {', '.join(longest)}, and folder='{path}'.")
    folders = ", ".join(sorted({known.folder for _, known in _readable()}))
    raise DataError(f"{path} is not the folder of a known data set: give a file, or a folder called {folders}.")


def load_named(name: str, split: str, folder: Path | None, limit: int | None, skip_bad: bool) -> Dataset:
    """One split of a named data set, from its folder or otherwise from the Hub.

    Without `folder` it is looked for under $RAISON_DATA, then under ../shared/data. A row of a folder is numbered by
    its line in the first of the split's files (counted from 1), a row of the Hub by its place (from 0). Rows of the Hub
    without a gold label are left out and named in `broken`, among the first `limit` ones. `sha256` is that of the
    split's files, one after the other; ERASER's reviews are not among them, but their rationales' words are checked.
    Raises UnknownNameError for a split; DataError for a missing file, for a broken line (as in `load_file`), or if only
    a folder can provide the split and there is none.
    """
    known = named()[name]
    if split not in known.splits:
        raise UnknownNameError(f"split of {name}", split, known.splits)
    place = folder if folder is not None else _folder_of(known)
    if place is None:
        return _from_hub(name, split, limit, skip_bad)
    paths = _paths(known, split, place)
    try:
        rows, broken = collect(known.splits[split].read(paths), str(paths[0]), limit, skip_bad)
        return Dataset(f"{name}/{split}", rows, broken, sha256_of(paths), known.labels)
    except OSError as error:
        raise DataError(f"cannot read {error.filename}: {error.strerror or error}.") from None


def named_paths(name: str, split: str, folder: Path | None = None) -> tuple[Path, ...]:
    """The files of a split in the folder of a named data set, for information that its rows lack.

    Raises DataError if there is no folder, or a file is missing.
    """
    known = named()[name]
    place = folder if folder is not None else _folder_of(known)
    if place is None:
        raise DataError(
            f"'{name}' must be available as files: put its folder '{known.folder}' where {ROOT_VARIABLE} points to."
        )
    return _paths(known, split, place)


def _paths(known: NamedSet, split: str, place: Path) -> tuple[Path, ...]:
    paths = tuple(place / file for file in known.splits[split].files)
    for path in paths:
        if not path.is_file():
            raise DataError(f"{path} is missing: the split '{split}' of '{known.folder}' needs it. Put the file there.")
    return paths


def _ends_with(parts: tuple[str, ...], folder: str) -> bool:
    end = Path(folder).parts
    return parts[-len(end) :] == end


def _folder_of(known: NamedSet) -> Path | None:
    root = os.environ.get(ROOT_VARIABLE)
    if root and not Path(root).is_dir():
        raise DataError(f"{ROOT_VARIABLE} is set to {root}, which is not a folder: correct or unset it.")
    roots = [Path(root)] if root else []
    return next((path for path in (base / known.folder for base in [*roots, DEFAULT_ROOT]) if path.is_dir()), None)


def _from_hub(name: str, split: str, limit: int | None, skip_bad: bool) -> Dataset:
    known = named()[name]
    source = known.splits[split].hub
    if source is None:
        raise DataError(
            f"the split '{split}' of '{name}' can only be read from its folder: the Hub has it in no readable form. "
            f"Put the folder '{known.folder}' where {ROOT_VARIABLE} points to, or give folder=."
        )
    # Only now: most users never read from the Hub.
    from raison.data.hub import load_hub

    data = load_hub(*source, limit=limit, skip_bad=skip_bad)
    rows = tuple(row for row in data.rows if row.label != NO_GOLD_LABEL)
    unlabelled = tuple(BrokenLine(row.number, "no gold label (-1)") for row in data.rows if row.label == NO_GOLD_LABEL)
    if not rows:
        raise DataError(f"{source[0]}, split {source[1]}, has no labels.")
    name = f"{name}/{split} (Hub: {source[0]}, {source[1]})"
    return replace(data, name=name, rows=rows, broken=(*data.broken, *unlabelled), labels=known.labels)
