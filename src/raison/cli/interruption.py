"""The message of an interrupted (Ctrl-C) long command: what is kept, and how to resume."""

import functools
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import Any, Literal

import typer

from raison.jobs.folder import WorkInterrupted

Keeping = Literal["nothing", "pages", "folder", "out", "data"]
CODE = 130
"""The exit code of an interrupted process."""


def interruptible(keeping: Keeping, resume: str = "") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """End an interrupted command with one line and exit code 130.

    `keeping` is what it leaves: nothing, the pages of a report, or a folder from which the next start resumes, with the
    option `resume` if it needs one. Some commands leave such a folder only with --out, or only with --data.
    """

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def run(*args: Any, **options: Any) -> None:
            try:
                command(*args, **options)
            except KeyboardInterrupt as stop:
                # A progress bar may not have ended its line.
                sys.stderr.write(f"raison: interrupted; {_told(stop, keeping, resume, options)}\n")
                raise typer.Exit(CODE) from None

        return run

    return decorated


def _told(stop: KeyboardInterrupt, keeping: Keeping, resume: str, options: dict[str, Any]) -> str:
    again = _command(sys.argv[1:])
    if isinstance(stop, WorkInterrupted):
        return f"what is finished is kept in {stop.folder}. To resume: {_command(sys.argv[1:], resume)}"
    if keeping == "pages":
        return f"the pages written so far are complete. To write all of them: {again}"
    if keeping == "nothing" or (keeping == "data" and not options["data"]):
        return f"nothing is kept. To start again: {again}"
    if keeping == "out" and options["out"] is None:
        return f"nothing is kept, because --out was not given. To start again: {again}"
    return f"what an earlier run has written is kept. To resume: {_command(sys.argv[1:], resume)}"


def _command(words: Sequence[str], resume: str = "") -> str:
    more = [resume] if resume and resume not in words else []
    return shlex.join(["raison", *words, *more])
