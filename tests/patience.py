"""How long a test waits for something before it fails, and how slow this machine is."""

import time
from functools import cache

PATIENCE = 180.0
"""Seconds. A loaded machine can be ten times slower than an idle one; a test that passes does not wait any longer."""
_ROUNDS = 2_000_000
_USUAL = 0.12
"""Seconds of processor time for so many rounds on a usual machine."""


@cache
def slowness() -> float:
    """How many times slower than a usual machine this one is, and at least 1: limits of processor time grow with it."""
    began = time.process_time()
    sum(number * number for number in range(_ROUNDS))
    return max(1.0, (time.process_time() - began) / _USUAL)
