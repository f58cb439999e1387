"""Work in a process of its own, to be interrupted or killed.

A fork has imported everything already; a new interpreter needs seconds for torch and transformers alone. It takes a new
one where forks are not safe: on other systems, beside a GPU, and where torch has started threads.
"""

import multiprocessing
import os
import signal
import sys
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.context import ForkProcess, SpawnProcess
from pathlib import Path

import torch

FORKS = sys.platform == "linux" and not torch.cuda.is_available() and torch.get_num_threads() == 1

Process = ForkProcess | SpawnProcess


def started(work: Callable[[], object], said: Path = Path(os.devnull)) -> Process:
    """The process that does it, a function that can be pickled; what it writes to stderr goes to the file `said`."""
    process = multiprocessing.get_context("fork" if FORKS else "spawn").Process(target=_work, args=(work, said))
    with warnings.catch_warnings():
        # Python 3.12 warns of forks where there are threads; they hold no lock that the work needs.
        warnings.simplefilter("ignore", DeprecationWarning)
        process.start()
    return process


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
