"""Simultaneous requests, as many as allowed, started in order."""

import asyncio
import inspect
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

Result = TypeVar("Result")


async def gathered(works: Sequence[Coroutine[Any, Any, Result]], limit: int) -> list[Result]:
    """The results in order. The first error cancels the remaining requests."""
    gate = asyncio.Semaphore(limit)

    async def one(work: Coroutine[Any, Any, Result]) -> Result:
        async with gate:
            return await work

    tasks = [asyncio.ensure_future(one(work)) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        for work in works:
            # Python complains of those that were cancelled at the gate, before they began.
            if inspect.getcoroutinestate(work) == inspect.CORO_CREATED:
                work.close()
