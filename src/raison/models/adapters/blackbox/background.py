"""One event loop for all asynchronous functions of callers, in a separate thread.

A network client belongs to the loop that it was first used in, so the loop lives as long as the process. In its own
thread it also works if a loop is already running, as in notebooks.
"""

import asyncio
import os
from collections.abc import Coroutine
from contextlib import suppress
from functools import lru_cache
from threading import Lock, Thread
from typing import Any, TypeVar, cast

Result = TypeVar("Result")

_STARTING = Lock()


def run_in_background(work: Coroutine[Any, Any, Result]) -> Result:
    """The coroutine's result, or the very error that it raised, with its notes; an interruption cancels it."""
    with _STARTING:
        # A forked process does not inherit its parent's threads.
        loop = _loop(os.getpid())
    future = asyncio.run_coroutine_threadsafe(_outcome(work), loop)
    try:
        result, error = future.result()
    except BaseException:
        future.cancel()
        raise
    if error is not None:
        raise error
    return cast("Result", result)


async def _outcome(work: Coroutine[Any, Any, Result]) -> tuple[Result | None, TimeoutError | None]:
    """The result, or an error that asyncio would replace by a new one on its way to another thread."""
    try:
        return await work, None
    except TimeoutError as error:
        return None, error


@lru_cache(maxsize=1)
def _loop(_process: int) -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    Thread(target=_run, args=(loop,), name="raison-async", daemon=True).start()
    return loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop until the process ends.

    A SystemExit or KeyboardInterrupt of a task leaves `run_forever`, but it is also the task's result, which its caller
    gets when the loop runs on.
    """
    while True:
        with suppress(SystemExit, KeyboardInterrupt):
            loop.run_forever()
