"""The message of an interrupted long command (Ctrl-C, SIGTERM): what is kept, and how to resume."""

import functools
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import typer

from raison.jobs.folder import WorkInterrupted

Keeping = Literal["nothing", "pages", "folder", "out", "data", "data and out"]
CODE = 130
"""The exit code of an interrupted process."""
ENDED = 128 + signal.SIGTERM
"""The exit code of a process that was asked to end, as schedulers ask."""


def interruptible(keeping: Keeping, resume: str = "") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """End an interrupted command with one line and exit code 130, or 143 after SIGTERM.

    `keeping` is what it leaves: nothing, the pages of a report, or a folder from which the next start resumes, with the
    option `resume` if it needs one. Some commands leave such a folder only with --out, or only with --data.
    """

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(*args: Any, **options: Any) -> None:
            received: list[int] = []
            try:
                with _ended_by_request(received):
                    command(*args, **options)
            except KeyboardInterrupt as stop:
                # A progress bar may not have ended its line.
                sys.stderr.write(f"raison: interrupted; {_told(stop, keeping, resume, options)}\n")
                raise typer.Exit(ENDED if received else CODE) from None

        return run

    return decorated


@contextmanager
def _ended_by_request(received: list[int]) -> Iterator[None]:
    """Inside, SIGTERM interrupts as Ctrl-C does, and is noted, unless it is ignored or handled by somebody else.

    Only the main thread can take signals.
    """
    usual = signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    if not usual or threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(number: int, _frame: object) -> None:
        received.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _told(stop: KeyboardInterrupt, keeping: Keeping, resume: str, options: dict[str, Any]) -> str:
    again = _command(sys.argv[1:])
    if isinstance(stop, WorkInterrupted):
        return f"what is finished is kept in {stop.folder}. To resume: {_command(sys.argv[1:], resume)}"
    if keeping == "pages":
        return f"the pages written so far are complete. To write all of them: {again}"
    if keeping == "nothing" or ("data" in keeping and not options["data"]):
        return f"nothing is kept. To start again: {again}"
    if "out" in keeping and options["out"] is None:
        return f"nothing is kept, because --out was not given. To start again: {again}"
    return f"what an earlier run has written is kept. To resume: {_command(sys.argv[1:], resume)}"


def _command(words: Sequence[str], resume: str = "") -> str:
    more = [resume] if resume and resume not in words else []
    return shlex.join(["raison", *words, *more])
