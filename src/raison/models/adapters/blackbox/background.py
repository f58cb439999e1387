"""One event loop for all asynchronous functions of callers, in a separate thread.

A network client belongs to the loop that it was first used in, so the loop lives as long as the process. In its own
thread it also works if a loop is already running, as in notebooks.
"""

import asyncio
import os
from collections.abc import Coroutine
from functools import lru_cache
from threading import Lock, Thread
from typing import Any, TypeVar

Result = TypeVar("Result")

_STARTING = Lock()


def run_in_background(work: Coroutine[Any, Any, Result]) -> Result:
    """The coroutine's result, or its error; an interruption cancels it."""
    with _STARTING:
        # A forked process does not inherit its parent's threads.
        loop = _loop(os.getpid())
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


@lru_cache(maxsize=1)
def _loop(_process: int) -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="raison-async", daemon=True).start()
    return loop
