"""Long work as a list of jobs, done by this process, by this process's share, or by several processes.

    a job       one idempotent piece with a key: stopped anywhere and run again, it gives the same records
    a shard     one of several processes that share the work, each with jobs of about the same total cost
    workers     processes of this machine that this one starts, a shard each, which divide the cores among them

A job that needs all others, such as a metric of all texts together, comes `last`: if several processes share the work,
one of them does it when everything else is done.
"""

import re
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Annotated, Literal, Protocol

from raison.core.errors import InputError, RaisonError
from raison.core.settings.fields import Setting, check
from raison.progress import Advance, ProgressCallback, progress_bar

Engine = Literal["local", "ray"]
_SHARD = re.compile(r"([1-9]\d*)/([1-9]\d*)")


@dataclass(frozen=True, slots=True)
class Job:
    """`cost` is its approximate total cost in any unit, done or not; `run` reports `size` finished parts.

    Jobs of one `title` that follow each other have one progress bar.
    """

    key: str
    title: str
    run: Callable[[ProgressCallback], None]
    is_done: Callable[[], bool]
    cost: float = 1.0
    size: int = 1
    last: bool = False
    unit: str = ""
    """The name of its parts, if their rate is shown."""
    reads_on: bool = False
    """Whether it reads a source on from where the job before it stopped, so that it costs least in the given order."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `count` processes that share some work, numbered from 1 (`number`)."""

    number: int = 1
    count: int = 1

    @property
    def file(self) -> int | None:
        """The number in its files' names; None for a process that does everything."""
        return self.number if self.count > 1 else None


WHOLE = Shard()
"""One process does everything."""


def shard_of(text: str) -> Shard:
    """The share written as "1/2". Raises InputError."""
    match = _SHARD.fullmatch(text.strip())
    if not match or int(match[1]) > int(match[2]):
        raise InputError(f"a shard is written as 1/2, the first of two processes that share the work; got '{text}'.")
    return Shard(int(match[1]), int(match[2]))


@dataclass(frozen=True, slots=True)
class Sharing:
    """How the work is shared: this process's `shard` of it, or all of it by `workers` processes that this one starts.

    Workers are processes of this machine, or actors of Ray: of the cluster at `address`, otherwise of a new local Ray.
    """

    shard: Annotated[
        Shard, Setting("Do one share of the work, such as 1/2, and 2/2 in another process.", read=shard_of)
    ] = WHOLE
    workers: Annotated[int, Setting("Number of processes that share the work and the processor.", least=1)] = 1
    engine: Annotated[Engine, Setting("Where the processes run: local, or ray (pip install 'raison[ray]').")] = "local"
    address: Annotated[str | None, Setting("With --engine ray: the cluster, such as auto or ray://host:10001.")] = None
    gpus: Annotated[float, Setting("With --engine ray: GPUs of each process, such as 0.5.", least=0)] = 0.0

    def __post_init__(self) -> None:
        check(self)
        if self.shard != WHOLE and self.workers > 1:
            raise InputError(
                "shard is one process's share and workers starts several processes: give only one of them."
            )
        if self.shard != WHOLE and self.engine != "local":
            raise InputError(
                "shard is one process's share and an engine divides the work itself: give only one of them."
            )
        if self.engine == "local" and (self.address is not None or self.gpus):
            raise InputError("address and gpus apply to Ray only: also give engine ray, or leave them out.")

    @property
    def is_here(self) -> bool:
        """Whether this process does the work itself."""
        return self.workers == 1 and self.engine == "local"


ALONE = Sharing()


def reason_of(error: Exception) -> str:
    """Why work in another process failed, in one line with its full stop: the error's text, and what was noted on it.

    An error that is not the library's is the caller's: its name comes first.
    """
    told = [str(error) or "no message", *getattr(error, "__notes__", ())]
    name = "" if isinstance(error, RaisonError) else f"{type(error).__name__}: "
    line = name + " ".join(" ".join(told).split())
    return line if line.endswith((".", "!", "?")) else f"{line}."


class Work(Protocol):
    """Work in a folder. It is pickled to be sent to other processes, and opened there."""

    @property
    def folder(self) -> Path:
        """The folder of its records; every process must have access to it."""

    def opened(self, shard: Shard) -> AbstractContextManager[Callable[[], Sequence[Job]]]:
        """Inside, the folder, or a share of it, belongs to this process; the function lists all jobs in their current
        state.

        Raises DataError for a folder of other work, BusyError if another process has this share.
        """


def do(jobs: Sequence[Job], progress: bool | Advance = True) -> None:
    """Do the missing jobs in order, and a last one as soon as its inputs exist, so that nothing is loaded twice.

    If `progress` is a function, it is called with the finished parts of all jobs except the last ones.
    """
    _perform(jobs, progress)


def do_share(jobs: Sequence[Job], shard: Shard, progress: bool | Advance = True) -> None:
    """Do a shard's missing jobs, except the last ones."""
    _perform(share([job for job in jobs if not job.last], shard), progress)


def finish(jobs: Sequence[Job], progress: bool | Advance = True) -> None:
    """Do the last jobs if all others are done, by whichever process. No other process may do the same meanwhile."""
    if all(job.is_done() for job in jobs if not job.last):
        _perform([job for job in jobs if job.last], progress)


def share(jobs: Sequence[Job], shard: Shard) -> list[Job]:
    """A shard's jobs in order: each goes to the least loaded shard, the most expensive first, with the same result in
    every process."""
    costs = [0.0] * shard.count
    taken = set()
    for place in sorted(range(len(jobs)), key=lambda place: -jobs[place].cost):
        number = costs.index(min(costs))
        costs[number] += jobs[place].cost
        if number == shard.number - 1:
            taken.add(place)
    return [job for place, job in enumerate(jobs) if place in taken]


def one_by_one(jobs: Sequence[Job]) -> list[Job]:
    """The missing jobs as processes take them one by one: the most expensive first, those that read on in their
    order."""
    return sorted((job for job in jobs if not job.is_done()), key=lambda job: 0.0 if job.reads_on else -job.cost)


def _perform(jobs: Sequence[Job], progress: bool | Advance) -> None:
    for (title, last), group in groupby(jobs, key=lambda job: (job.title, job.last)):
        together = list(group)
        show = False if last and not isinstance(progress, bool) else progress
        with progress_bar(title, sum(job.size for job in together), show, unit=together[0].unit) as advance:
            for job in together:
                if job.is_done():
                    advance(job.size)
                else:
                    job.run(advance)
