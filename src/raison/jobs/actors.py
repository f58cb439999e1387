"""Jobs in Ray: Ray Data passes them to actors, each of which holds the model and writes into the folder itself.

Ray places the actors, holds jobs back until one is free, replaces an actor that dies, and gives its job to another.
Whatever a job has written by then is on disk, and the job resumes from there. The records are those of any other
engine.
"""

import logging
import os
import pickle
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from raison.core.errors import BusyError, DataError
from raison.jobs import shared_folder
from raison.jobs.engine import Job, Shard, Sharing, Work, one_by_one, reason_of
from raison.jobs.folder import WorkInterrupted
from raison.jobs.workers import packed
from raison.progress import Advance, CallbackProgress, progress_bar

if TYPE_CHECKING:
    from ray.data import Dataset

SHARES = 1000
"""Number of shares; an actor takes the first that no living process holds."""
STORE = 128 * 2**20
"""Bytes that Ray reserves for objects passed between processes: keys of jobs, not texts."""
_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0"}


def in_actors(work: Work, jobs: Sequence[Job], sharing: Sharing, progress: bool | Advance = True) -> None:
    """Do the missing jobs in the order of `one_by_one`, with one actor per worker.

    Raises DataError without Ray, and with the first job's reason if one fails: finished work stays.
    """
    missing = one_by_one(jobs)
    total = sum(job.size for job in missing)
    request = packed(work)
    reason = ""
    with progress_bar(f"{sharing.workers} actors", total, progress, unit=missing[0].unit) as advance, _ray(sharing):
        try:
            for row in _handed_out(request, [job.key for job in missing], sharing).iter_rows():
                reason = str(row["failed"])
                if reason:
                    break
                advance(int(row["size"]), str(row["note"]))
        except KeyboardInterrupt:
            raise WorkInterrupted(work.folder) from None
    if reason:
        raise DataError(f"{reason} Finished work is kept: start again to resume it.")


class Actor:
    """Holds an opened share of the work; called with keys of jobs, it does them."""

    def __init__(self, request: bytes) -> None:
        self._held = ExitStack()
        self._failed = ""
        self._jobs: dict[str, Job] = {}
        work: Work = pickle.loads(request)
        try:
            self._jobs = {job.key: job for job in self._open(work)}
        except Exception as error:  # noqa: BLE001 - the process that started the actors raises it
            self._failed = reason_of(error)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        """The batch with each job's size, its latest numbers, and the reason if it failed."""
        done = [self._done(str(key)) for key in batch["key"]]
        return {name: [one[place] for one in done] for place, name in enumerate(("size", "note", "failed"))}

    def _open(self, work: Work) -> Sequence[Job]:
        """The jobs of the first share that is free: an actor in place of a dead one may take its share."""
        for number in range(1, SHARES + 1):
            try:
                return self._held.enter_context(work.opened(Shard(number, SHARES)))()
            except BusyError:
                continue
        raise DataError(f"more than {SHARES} processes are working in {work.folder}: use fewer.")

    def _done(self, key: str) -> tuple[int, str, str]:
        notes = [""]
        if self._failed:
            return 0, "", self._failed
        job = self._jobs[key]
        try:
            if not job.is_done():
                job.run(CallbackProgress(lambda _, note: notes.append(note)))
        except Exception as error:  # noqa: BLE001 - the process that started the actors raises it
            return 0, "", reason_of(error)
        return job.size, notes[-1], ""


def _handed_out(request: bytes, keys: Sequence[str], sharing: Sharing) -> "Dataset":
    from ray import data

    with warnings.catch_warnings():
        # Warnings about settings that Ray 2.60 makes itself, and about arguments that have no other names yet.
        warnings.simplefilter("ignore")
        data.DataContext.get_current().enable_progress_bars = False
        listed = data.from_items([{"key": key} for key in keys], override_num_blocks=len(keys))
        return listed.map_batches(
            Actor,
            fn_constructor_args=(request,),
            batch_size=1,
            compute=data.ActorPoolStrategy(size=sharing.workers, max_tasks_in_flight_per_actor=1),
            num_cpus=1,
            num_gpus=sharing.gpus,
            max_restarts=-1,
            max_task_retries=-1,
        )


@contextmanager
def _ray(sharing: Sharing) -> Iterator[None]:
    """Ray, started here or connected to; Ray and the environment are restored afterwards. Raises DataError.

    Ray Data's own progress bars and messages stay off in this process.
    """
    before = dict(os.environ)
    # A shared folder that no longer exists must not be passed on.
    settings = {**_QUIET, **before, **shared_folder.for_started()}
    os.environ.update(settings)
    try:
        with _started(sharing):
            yield
    finally:
        # Ray sets some variables, and a debugger.
        rays = {name for name in os.environ if name.startswith("RAY_")}
        for name in {*_QUIET, shared_folder.FOLDER, "PYTHONBREAKPOINT"} | rays:
            if name in before:
                os.environ[name] = before[name]
            else:
                os.environ.pop(name, None)


@contextmanager
def _started(sharing: Sharing) -> Iterator[None]:
    try:
        import ray
        import ray.data
    except ImportError:
        raise DataError("--engine ray needs Ray: pip install 'raison[ray]', or leave --engine out.") from None
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    if ray.is_initialized():
        yield
        return
    try:
        if sharing.address is None:
            # One core more than actors: Ray's own steps need one.
            ray.init(
                num_cpus=sharing.workers + 1,
                num_gpus=sharing.gpus * sharing.workers or None,
                include_dashboard=False,
                object_store_memory=STORE,
                log_to_driver=False,
                logging_level="ERROR",
            )
        else:
            ray.init(address=sharing.address, log_to_driver=False, logging_level="ERROR")
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise DataError(f"Ray cannot be used ({_line(error)}).") from None
    try:
        yield
    finally:
        ray.shutdown()


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())
