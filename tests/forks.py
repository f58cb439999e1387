"""Processes that share work, as forks of this one: a new interpreter needs seconds for torch and transformers alone.

They stand for those that raison.jobs.workers starts. That these import what they need by themselves is tested by
tests/unit/jobs/test_workers.py, and of a study by a thorough test of tests/contracts/test_kinds.py.
"""

import os
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from types import SimpleNamespace
from typing import BinaryIO

import pytest

from raison.jobs import shared_folder, workers
from tests.apart import FORKS


class Fork:
    """A worker that has imported everything already, as far as its starter uses a process."""

    def __init__(self, others: "list[Fork]", environment: dict[str, str]) -> None:
        given, to_it = os.pipe()
        from_it, heard = os.pipe()
        self.returncode: int | None = None
        self._lock = threading.Lock()
        with warnings.catch_warnings():
            # Python 3.12 warns of forks where there are threads; they hold no lock that the work needs.
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if not self.pid:
            # A pipe ends when nobody holds its end, this process included.
            for end in (to_it, from_it, *(stream.fileno() for other in others for stream in other.streams)):
                os.close(end)
            _work(given, heard, environment)
        os.close(given)
        os.close(heard)
        self.stdin: BinaryIO = os.fdopen(to_it, "wb")
        self.stdout: BinaryIO = os.fdopen(from_it, "rb")

    @property
    def streams(self) -> list[BinaryIO]:
        """Those that are open."""
        return [stream for stream in (self.stdin, self.stdout) if not stream.closed]

    def poll(self) -> int | None:
        with self._lock:
            if self.returncode is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        end = time.monotonic() + timeout if timeout is not None else None
        while (code := self.poll()) is None:
            if end is not None and time.monotonic() > end:
                raise subprocess.TimeoutExpired("a fork", timeout or 0.0)
            time.sleep(0.005)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


def _work(given: int, heard: int, environment: dict[str, str]) -> None:
    """The main function of a worker between these ends of two pipes, and the end of the process."""
    code: object = 1
    # A new process would know the folder that it shares by its environment alone. Whoever drops it deletes it.
    _kept = shared_folder._own()
    try:
        shared_folder._own.cache_clear()
        os.environ.clear()
        os.environ.update(environment)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.dup2(given, 0)
        os.dup2(heard, 1)
        sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
        os.close(given)
        os.close(heard)
        workers.main()
        code = 0
    except SystemExit as end:
        code = end.code
    except Exception:
        traceback.print_exc()
        raise
    finally:
        os._exit(code if isinstance(code, int) else 1)


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this test, workers are forks, where forks are safe."""
    if not FORKS:
        return
    forks: list[Fork] = []

    def opened(_words: list[str], *, env: dict[str, str], **_pipes: object) -> Fork:
        forks.append(Fork(forks, env))
        return forks[-1]

    own = SimpleNamespace(Popen=opened, PIPE=subprocess.PIPE, TimeoutExpired=subprocess.TimeoutExpired)
    monkeypatch.setattr(workers, "subprocess", own)
