"""Work in a process of its own, to be interrupted or killed.

A fork has imported everything already; a new interpreter needs seconds for torch and transformers alone. It takes a new
one where forks are not safe: on other systems, beside a GPU, and where torch has started threads.
"""

import multiprocessing
import os
import signal
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.context import ForkProcess, SpawnProcess
from pathlib import Path
from typing import IO, ClassVar

import torch

FORKS = sys.platform == "linux" and not torch.cuda.is_available() and torch.get_num_threads() == 1

Process = ForkProcess | SpawnProcess


def started(work: Callable[[], object], said: Path = Path(os.devnull)) -> Process:
    """The process that does it, a function that can be pickled; what it writes to stderr goes to the file `said`."""
    process = multiprocessing.get_context("fork" if FORKS else "spawn").Process(target=_work, args=(work, said))
    _start(process)
    return process


def _start(process: Process) -> None:
    with warnings.catch_warnings():
        # Python 3.12 warns of forks where there are threads; they hold no lock that the work needs.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()


class Forked:
    """A fork with pipes, for what starts a new interpreter: what is used of `subprocess.Popen` has the same names."""

    _open: ClassVar[list[IO[bytes]]] = []

    def __init__(self, main: Callable[[], object]) -> None:
        (given, to), (back, told) = os.pipe(), os.pipe()
        self.stdin, self.stdout = os.fdopen(to, "wb"), os.fdopen(back, "rb")
        # Nobody's input ends while another process has it open, too.
        Forked._open = [file for file in (*Forked._open, self.stdin, self.stdout) if not file.closed]
        others = [file.fileno() for file in Forked._open]
        self._process = multiprocessing.get_context("fork").Process(target=_piped, args=(main, given, told, others))
        _start(self._process)
        os.close(given)
        os.close(told)

    @property
    def returncode(self) -> int | None:
        """None while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """The return code, without waiting."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The return code when it has ended. Raises TimeoutExpired."""
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired("a fork", timeout or 0.0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """To the process."""
        assert self._process.pid is not None
        os.kill(self._process.pid, number)

    def terminate(self) -> None:
        """By its signal."""
        self._process.terminate()


def _piped(main: Callable[[], object], given: int, told: int, others: list[int]) -> None:
    for number in others:
        os.close(number)
    os.dup2(given, 0)
    os.dup2(told, 1)
    os.close(given)
    os.close(told)
    sys.stdin = os.fdopen(0, closefd=False)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))
    main()


def interrupted(process: Process, by: signal.Signals = signal.SIGINT) -> None:
    """Ctrl-C, or another signal, until it ends. Python drops an interrupt that falls into a destructor: then again."""
    assert process.pid is not None
    for _ in range(5):
        os.kill(process.pid, by)
        process.join(10)
        if process.exitcode is not None:
            return
    process.kill()
    process.join()


def _work(work: Callable[[], object], said: Path) -> None:
    # A shell that starts the tests in the background has them ignore the signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    errors, nothing = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), os.open(os.devnull, os.O_WRONLY)
    os.dup2(errors, 2)
    os.dup2(nothing, 1)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", encoding="utf-8", closefd=False) for number in (1, 2))
    try:
        work()
    except Exception:
        traceback.print_exc()
        raise
