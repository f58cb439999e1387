"""What callers' asynchronous functions may raise in the loop that all of them share."""

import asyncio

import pytest

from raison.models.adapters.blackbox.background import run_in_background


async def fails(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error


async def fails_inside(error: BaseException) -> None:
    await asyncio.gather(asyncio.sleep(0), fails(error))


async def stops(_: BaseException) -> None:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0)
    raise ValueError("gone on")


async def answer() -> int:
    await asyncio.sleep(0)
    return 3


@pytest.mark.parametrize("work", [fails, fails_inside, stops])
@pytest.mark.parametrize("error", [SystemExit(2), KeyboardInterrupt(), TimeoutError("late")])
def test_what_a_function_raises_is_handed_back_and_the_loop_runs_on(work: object, error: BaseException) -> None:
    with pytest.raises((type(error), ValueError)):
        run_in_background(work(error))  # type: ignore[operator]
    assert run_in_background(answer()) == 3
