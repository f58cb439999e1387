"""Ownership of a folder: it holds one kind of work, which one process does at a time.

Every kind has a marker file, the first that it writes. A folder with another kind's file, or with files and none
of these, is refused before anything in it is touched.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from filelock import BaseFileLock, FileLock, Timeout

from raison.core.errors import BusyError, DataError
from raison.jobs import disk
from raison.jobs.store import read_head, write_head

T = TypeVar("T")

FILE = "study.toml"
"""The copy of a study's file in its folder."""
LOCK = ".lock"
PATIENCE = 20.0
"""Seconds that a shard waits for the other processes to start."""


class WorkInterrupted(KeyboardInterrupt):
    """An interrupt (Ctrl-C) of work in a folder, which keeps finished work."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder


@dataclass(frozen=True, slots=True)
class WorkKind:
    """A kind of work: its name in errors, and its folder's marker file.

    Trainings share that file; its `kind` distinguishes them. `early` files may exist before it.
    """

    name: str
    marker: str
    early: tuple[str, ...] = ()

    @property
    def noun(self) -> str:
        """The first word of its name: "study" for "a study of trust"."""
        return self.name.split()[1]


TRAINING = "training.json"

COMPARISON = WorkKind("a comparison", "run.json")
STUDY = WorkKind("a study of methods", "study.json")
TRAININGS = WorkKind("a study of trainings", "trainings.json")
TRUST = WorkKind("a study of trust", "trust.json")
AUDIT = WorkKind("an audit", "audit.json")
EXPLANATIONS = WorkKind("explanations of files", "manifest.json")
CLASSIFIER = WorkKind("the training of a classifier", TRAINING)
ANSWERS = WorkKind("the training of answers from sources", TRAINING)
SCRATCH = WorkKind("the training of a whole model", TRAINING)
FINE_TUNING = WorkKind("the fine-tuning of a model", TRAINING)
AML = WorkKind("the training of an explainer (aml)", TRAINING)
AMORTIZED_SHAP = WorkKind("the training of an explainer (amortized_shap)", TRAINING)
AT2 = WorkKind("the training of attention heads (at2)", TRAINING)
IVRA = WorkKind("the training of a model that explains itself (ivra)", TRAINING, early=("plain",))
KINDS = (
    COMPARISON, STUDY, TRAININGS, TRUST, AUDIT, EXPLANATIONS, CLASSIFIER, ANSWERS, SCRATCH, FINE_TUNING, AML,
    AMORTIZED_SHAP, AT2, IVRA,
)  # fmt: skip


def read_marker(folder: Path, kind: WorkKind) -> dict[str, Any] | None:
    """The content of the folder's marker file; None if there is none.

    Raises DataError if it is broken, or was changed after it was written.
    """
    return read_head(folder / kind.marker)


def write_marker(folder: Path, kind: WorkKind, content: Mapping[str, Any]) -> None:
    """Write it, whole and with its checksum. Raises DataError."""
    write_head(folder / kind.marker, content)


def refuse_others(folder: Path, kind: WorkKind) -> None:
    """DataError unless the folder is missing, empty or holds this kind of work. Touches nothing."""
    try:
        above = next((path for path in (folder, *folder.parents) if path.exists()), Path())
        if not above.is_dir():
            raise DataError(
                f"{folder} cannot be the output folder: {above} is a file. Choose another folder for --out."
            )
        names = sorted(path.name for path in folder.iterdir()) if folder.exists() else []
    except OSError as error:
        raise DataError(f"{folder} cannot be used as the output folder: {error.strerror or error}.") from None
    existing = next((other for other in (kind, *KINDS) if other.marker in names and _is_of(folder, other)), None)
    if existing is not None and existing != kind:
        raise DataError(f"{folder} holds {existing.name}, not {kind.name}: choose another folder for --out.")
    if existing is None and FILE in names:
        raise DataError(f"{folder} holds a study file ({FILE}), but not {kind.name}: choose another folder for --out.")
    left = [name for name in names if not name.startswith(".") and not name.endswith(disk.PART)]
    left = [name for name in left if name not in kind.early]
    if existing is None and left:
        raise DataError(
            f"{folder} holds other files ({', '.join(left[:3])}{', ...' if left[3:] else ''}): choose an empty or a "
            "new folder for --out."
        )


def refuse_links(folder: Path, part: str = "") -> None:
    """DataError for a link in the folder, or in a `part` of it, that leads out: writing would follow it.

    The folder itself may be a link: a person has chosen it.
    """
    start, whole = folder / part, Path(os.path.realpath(folder))
    inside = (Path(above, name) for above, folders, files in os.walk(start) for name in (*folders, *files))
    for path in (start, *inside):
        if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(whole):
            raise DataError(f"{path} is a link that leads out of {folder}: put a copy of what it leads to there.")


@contextmanager
def working_in(folder: Path, kind: WorkKind, shard: int | None = None) -> Iterator[None]:
    """Inside, the folder belongs to this process; partly written files of a killed process are removed first.

    With `shard`, the number of this process's share, only that share does: others may work on theirs. Raises DataError
    for another kind's folder, and if another process is at work; an interrupt becomes WorkInterrupted, which names the
    folder.
    """
    refuse_others(folder, kind)
    refuse_links(folder)
    new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise DataError(f"{folder} cannot be made: {reason}. Choose another folder for --out.") from error
    with ExitStack() as held:
        if new:
            held.callback(_remove_empty, folder)
        if shard is None:
            held.enter_context(_held(folder, LOCK))
            # Each process with a share holds its own lock.
            for path in sorted(folder.glob(f"{LOCK}-*")):
                held.enter_context(_held(folder, path.name))
            refuse_others(folder, kind)
            disk.sweep(folder)
        else:
            held.enter_context(_held(folder, f"{LOCK}-{shard}"))
        try:
            yield
        except KeyboardInterrupt:
            # Nested work is guarded by the outer lock.
            raise WorkInterrupted(folder) from None


@contextmanager
def begun_in(folder: Path, kind: WorkKind, shard: int | None, begin: Callable[[], T]) -> Iterator[T]:
    """`working_in`, with the result of `begin`, which writes or checks what all shares read, in one process
    at a time. Raises DataError."""
    with working_in(folder, kind, shard):
        with nullcontext() if shard is None else _held(folder, LOCK, PATIENCE):
            begun = begin()
        yield begun


@contextmanager
def claimed(path: Path) -> Iterator[bool]:
    """Inside, whether this process alone has the file `path` as its lock; it is removed at the end.

    Whoever gets it afterwards has to look whether the work is already done.
    """
    lock: BaseFileLock = FileLock(path, timeout=0.0)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except Timeout:
        yield False
        return
    except OSError as error:
        raise DataError(f"{path} cannot be locked: {error.strerror or error}.") from None
    try:
        yield True
        forget(path)
    finally:
        lock.release()


def forget(lock: Path) -> None:
    """Remove the file of a lock, unless it is already gone or, on Windows, open: it holds nothing."""
    with suppress(OSError):
        lock.unlink()


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Inside `working_in` with a share: an exclusive lock to do what needs all shares. Waits without a limit."""
    with _held(folder, LOCK, seconds=-1):
        yield


def _remove_empty(folder: Path) -> None:
    """Remove the folder if it is empty."""
    with suppress(OSError):
        folder.rmdir()


@contextmanager
def _held(folder: Path, name: str, seconds: float = 0.0) -> Iterator[None]:
    """A lock of the operating system, which ends with its process in any case; a negative time waits forever."""
    lock: BaseFileLock = FileLock(folder / name, timeout=seconds)
    try:
        lock.acquire()
    except Timeout:
        raise BusyError(
            f"another process is working in {folder}: wait until it has finished, or choose another folder for --out."
        ) from None
    except OSError as error:
        raise DataError(f"cannot lock {folder}: {error.strerror or error}.") from None
    try:
        yield
    finally:
        # Deleted while the lock is held: a process that opened the file meanwhile finds it deleted, and opens a new
        # one.
        (folder / name).unlink(missing_ok=True)
        lock.release()


def _is_of(folder: Path, kind: WorkKind) -> bool:
    if kind.marker != TRAINING:
        return True
    return (read_marker(folder, kind) or {}).get("kind") == kind.name
