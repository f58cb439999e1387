"""Progress of long work on stderr: bars on a terminal, otherwise a line every few seconds."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

DELAY = 1.0
"""Seconds before a bar is drawn; shorter work needs none."""
EVERY = 15.0
"""Seconds between two lines if there is no terminal."""

Advance = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class CallbackProgress:
    """A function that is called in place of a progress bar, with the latest numbers as a note."""

    hear: Callable[[int, str], None]

    def __call__(self, count: int, note: str = "") -> None:
        """Say that `count` more are done."""
        self.hear(count, note)


class ProgressCallback(Protocol):
    """A function that is called with the number of newly finished items, and with the latest numbers in words."""

    def __call__(self, count: int, note: str = "") -> None:
        """Say that `count` more are done."""


@dataclass(slots=True, eq=False)
class _Task:
    title: str
    total: int
    done: int = 0
    note: str = ""
    first: int = 0
    """The amount done before this process began."""
    began: float = 0.0
    bar: TaskID | None = None
    unit: str = ""

    @property
    def said(self) -> str:
        """The rate since this process began, and the latest numbers."""
        spent = time.monotonic() - self.began
        rate = [f"{(self.done - self.first) / spent:,.3g} {self.unit}/s"] if self.unit and spent else []
        return ", ".join([*rate, *([self.note] if self.note else [])])

    def line(self) -> str:
        """ "training 120/600 (loss 0.412), 0:01:00 so far, 0:04:00 left"."""
        spent = time.monotonic() - self.began
        share = (self.done - self.first) / max(1, self.total - self.first)
        left = f", {duration(spent / share - spent)} left" if share else ""
        note = f" ({self.said})" if self.said else ""
        return f"{self.title} {self.done:,}/{self.total:,}{note}, {duration(spent)} so far{left}"


class _Screen:
    """Stderr, which all work of this process shares; each level of nested work has its own bar."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._tasks: list[_Task] = []
        self._live: Progress | None = None
        self._began = 0.0
        self._said = 0.0

    def add(self, task: _Task) -> None:
        with self._lock:
            if not self._tasks:
                self._began = self._said = time.monotonic()
            task.began = time.monotonic()
            self._tasks.append(task)
            self._show()

    def advance(self, task: _Task, count: int, note: str) -> None:
        with self._lock:
            task.done += count
            task.note = note or task.note
            self._show()

    def say(self, line: str) -> None:
        with self._lock:
            if self._live is not None:
                self._live.console.print(line, highlight=False, markup=False)
            else:
                sys.stderr.write(f"{line}\n")
                sys.stderr.flush()

    def remove(self, task: _Task) -> None:
        with self._lock:
            self._tasks.remove(task)
            if self._live is not None and task.bar is not None:
                self._live.remove_task(task.bar)
            if not self._tasks and self._live is not None:
                self._live.stop()
                self._live = None

    def _show(self) -> None:
        now = time.monotonic()
        if self._live is None and Console(stderr=True).is_terminal:
            if now - self._began < DELAY:
                return
            self._live = _bars()
            self._live.start()
        if self._live is not None:
            self._draw(self._live)
        elif now - self._said >= EVERY:
            self._said = now
            sys.stderr.write(f"raison: {'; '.join(task.line() for task in self._tasks)}\n")
            sys.stderr.flush()

    def _draw(self, live: Progress) -> None:
        for task in self._tasks:
            if task.bar is None:
                task.bar = live.add_task(task.title, total=task.total, note="")
            live.update(task.bar, completed=task.done, note=task.said)


_SCREEN = _Screen()
_shown: ContextVar[bool] = ContextVar("shown", default=False)
_heard: ContextVar[Advance | None] = ContextVar("heard", default=None)


@contextmanager
def progress_bar(
    title: str, total: int, show: bool | Advance, done: int = 0, unit: str = ""
) -> Iterator[ProgressCallback]:
    """Yields a function to call with the number of newly finished items; `done` of `total` were finished before.

    A bar appears on stderr after a second of work; if stderr is no terminal, a line every 15 seconds. A single item is
    not counted. `show` may be a function of the caller's, which is then called instead. Steps of the work inside
    (`steps_of`) are shown below, if this is shown. With `unit`, the rate is shown, too.
    """
    token = _shown.set(show is True)
    try:
        if show is True and total > 1:
            with _task(_Task(title, total, done, first=done, unit=unit)) as told:
                yield told
        else:
            yield _listener(show if callable(show) else None)
    finally:
        _shown.reset(token)


def is_shown() -> bool:
    """Whether the current work is shown."""
    return _shown.get()


@contextmanager
def hearing(function: Advance) -> Iterator[None]:
    """Call a function at each step of work that is not shown. It may raise, which ends the work between two passes."""
    token = _heard.set(function)
    try:
        yield
    finally:
        _heard.reset(token)


def say(line: str) -> None:
    """Print a line about the current work on stderr, above the bars of a terminal or into a log, if work is shown."""
    if _shown.get():
        _SCREEN.say(line)


@contextmanager
def steps_of(title: str, total: int) -> Iterator[ProgressCallback]:
    """As `progress_bar`, for steps inside other work: shown if that work is shown."""
    if not _shown.get() or total < 2:
        yield _listener(_heard.get())
        return
    with _task(_Task(title, total)) as told:
        yield told


@contextmanager
def _task(task: _Task) -> Iterator[ProgressCallback]:
    def told(count: int, note: str = "") -> None:
        _SCREEN.advance(task, count, note)

    _SCREEN.add(task)
    try:
        yield told
    finally:
        _SCREEN.remove(task)


def _listener(function: Advance | None) -> ProgressCallback:
    if isinstance(function, CallbackProgress):
        return function

    def told(count: int, note: str = "") -> None:
        if function is not None:
            function(count)

    return told


def _bars() -> Progress:
    return Progress(
        TextColumn("{task.description}", style="progress.description", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=Console(stderr=True),
        transient=True,
    )


def duration(seconds: float) -> str:
    """Hours, minutes and seconds, such as 0:01:30."""
    return str(timedelta(seconds=round(seconds)))
