"""Several processes on this machine, each with a share of the work and of the cores."""

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from raison.core.errors import DataError, InputError, RaisonError
from raison.jobs import shared_folder
from raison.jobs.engine import Job, Shard, Work, do_share, reason_of
from raison.jobs.folder import WorkInterrupted
from raison.progress import Advance, CallbackProgress, ProgressCallback, progress_bar

_THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
_CODE = "from raison.jobs.workers import main; main()"
_DONE, _FAILED = b"+", b"!"
PROMPT, AGAIN, TIMES = 3.0, 5.0, 4
"""Seconds until an interrupt is passed on to the processes, seconds that they then have to finish writing before it is
repeated, and how often: Python loses one that comes while an object is deleted."""

_LOOK = 0.1
"""Seconds between two looks at whether reporting progress has failed."""


def packed(work: Work) -> bytes:
    """The work in a form for another process. Raises InputError if it cannot be sent."""
    try:
        return pickle.dumps(work)
    except (pickle.PicklingError, TypeError, AttributeError) as error:
        raise InputError(
            f"this work cannot be divided among processes here ({error}): pass load=, a function of an importable "
            "module that loads the model in each process, or start one process for each share, with --shard."
        ) from None


def in_processes(work: Work, jobs: Sequence[Job], count: int, progress: bool | Advance = True) -> None:
    """Do the `jobs` of some work, except the last ones, in `count` new processes at the same time, each as one shard.

    Raises InputError for work that cannot be pickled, and DataError with the first process's reason if one fails:
    finished work stays. An interrupt becomes WorkInterrupted.
    """
    whole = packed(work)
    requests = [pickle.dumps((whole, Shard(number, count))) for number in range(1, count + 1)]
    started = [_started(count) for _ in requests]
    total, unit = sum(job.size for job in jobs), jobs[0].unit
    with progress_bar(f"{count} processes", total, progress, unit=unit) as advance:
        heard = _Heard(advance)
        threads = [
            threading.Thread(target=heard.listen, args=pair, daemon=True)
            for pair in zip(started, requests, strict=True)
        ]
        try:
            _joined(threads, started, heard)
        except KeyboardInterrupt:
            raise WorkInterrupted(work.folder) from None
    if heard.raised is not None:
        # The processes had ended before anybody looked.
        raise heard.raised
    if heard.reasons:
        raise DataError(f"{heard.reasons[0]} Finished work is kept: start again to resume it.")


@dataclass(slots=True)
class _Heard:
    """What the processes report: their progress, the reasons of those that failed, and what `advance` raised."""

    advance: ProgressCallback
    reasons: list[str] = field(default_factory=list)
    raised: Exception | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    def listen(self, process: "subprocess.Popen[bytes]", request: bytes) -> None:
        """Send a process its request and hear it until it ends."""
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError), process.stdin as given:
            given.write(request)
        with process.stdout as heard:
            for line in heard:
                with self.lock:
                    self._note(line)
        if process.wait() and not self.reasons:
            with self.lock:
                self.reasons.append(f"a process ended with exit code {process.returncode}.")

    def _note(self, line: bytes) -> None:
        if line.startswith(_FAILED):
            self.reasons.append(line[1:].decode().strip())
        elif line.startswith(_DONE) and self.raised is None:
            number, _, note = line[1:].decode().partition(" ")
            try:
                self.advance(int(number), note.strip())
            except Exception as error:  # noqa: BLE001 - the waiting thread raises it
                self.raised = error


def main() -> None:
    """The main function of a worker: reads its work from stdin, reports progress on stdout."""
    whole, shard = pickle.loads(sys.stdin.buffer.read())
    out = os.fdopen(os.dup(sys.stdout.fileno()), "wb", buffering=0)
    # Output of libraries must not be mistaken for progress reports.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())

    def hear(count: int, note: str) -> None:
        out.write(_DONE + f"{count} {note}\n".encode())

    try:
        work: Work = pickle.loads(whole)
        with work.opened(shard) as listed:
            do_share(listed(), shard, CallbackProgress(hear))
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception as error:  # noqa: BLE001 - the process that started this one raises it
        if not isinstance(error, RaisonError):
            traceback.print_exc()
        out.write(_FAILED + reason_of(error).encode("utf-8", "backslashreplace") + b"\n")
        sys.exit(2)


def _started(count: int) -> "subprocess.Popen[bytes]":
    # Each gets its part of the cores, or the caller's own limit if lower.
    cores = max(1, (os.cpu_count() or 1) // count)
    threads = {name: str(min(cores, _number(os.environ.get(name), cores))) for name in _THREADS}
    # Modules are looked for where this process does, and with -P not first in the current folder.
    places = {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _CODE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, **threads, **places, **shared_folder.for_started(), "TOKENIZERS_PARALLELISM": "false"},
    )


def _joined(threads: list[threading.Thread], processes: "list[subprocess.Popen[bytes]]", heard: _Heard) -> None:
    """Wait for all processes. An interrupt, or what reporting progress raises, also stops them; they keep finished
    work."""
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(_LOOK)
                if heard.raised is not None:
                    raise heard.raised
    except BaseException:
        interrupt(processes)
        raise
    finally:
        for process in processes:
            process.wait()


def interrupt(processes: "list[subprocess.Popen[bytes]]") -> None:
    """Pass an interrupt on, unless the terminal has interrupted all processes. Processes that take long are stopped."""
    if _all_ended(processes, PROMPT):
        return
    for _ in range(TIMES):
        for process in processes if os.name == "posix" else ():
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        if _all_ended(processes, AGAIN):
            return
    for process in processes:
        process.terminate()


def _all_ended(processes: "list[subprocess.Popen[bytes]]", seconds: float) -> bool:
    """Whether all have ended within some seconds."""
    end = time.monotonic() + seconds
    with suppress(subprocess.TimeoutExpired):
        for process in processes:
            process.wait(max(0.0, end - time.monotonic()))
        return True
    return False


def _number(text: str | None, default: int) -> int:
    return int(text) if text and text.isdecimal() and int(text) else default
