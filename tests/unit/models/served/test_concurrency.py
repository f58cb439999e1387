"""Simultaneous requests: what has not begun when one fails is closed without a word."""

import asyncio
import gc
import warnings

import pytest

from raison.models.served.concurrency import gathered


def test_requests_that_wait_when_one_fails_are_never_begun_and_never_missed() -> None:
    begun: list[int] = []

    async def one(number: int) -> int:
        begun.append(number)
        await asyncio.sleep(0)
        if number == 1:
            raise LookupError("the second")
        return number

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert asyncio.run(gathered([one(0), one(2), one(3)], 2)) == [0, 2, 3]
        begun.clear()
        with pytest.raises(LookupError, match="the second"):
            asyncio.run(gathered([one(number) for number in range(10)], 2))
        gc.collect()
    assert len(begun) < 10
