"""Torch's global generators as one training uses them, beside other threads that draw."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from raison.models.stack.eval_mode import drawing
from raison.training.loop import checkpoint


class OwnGenerators:
    """The states that a training has of the CPU's and the CUDA devices' generators, at first those of its seed.

    They are in place only inside `in_use`, and the others' are put back after it. A training enters it for a step or an
    evaluation at a time, so that other threads that draw, and other trainings, wait for that long and not for hours,
    and nobody changes what another one draws.
    """

    def __init__(self, seed: int) -> None:
        with drawing(seed, _devices()):
            torch.cuda.manual_seed_all(seed)
            self._states = checkpoint.random_state()

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Inside, this thread alone draws, from these states. Work that waits for another thread's draws would hang."""
        with drawing(devices=_devices()):
            checkpoint.set_random_state(self._states)
            try:
                yield
            finally:
                self._states = checkpoint.random_state()


def _devices() -> range:
    return range(torch.cuda.device_count())
