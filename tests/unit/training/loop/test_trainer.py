"""Trainings beside other threads."""

from collections.abc import Iterator
from dataclasses import dataclass
from threading import Barrier, Thread

import torch
from torch import Tensor, nn

from raison.models.stack.eval_mode import drawing
from raison.training.loop.objective import Objective, TrainingBatch
from raison.training.loop.trainer import History, TrainSettings, fit
from tests.patience import PATIENCE


@dataclass(frozen=True)
class Batches:
    """Three batches, each of which waits for the other training's."""

    together: Barrier

    def __len__(self) -> int:
        return 3

    def epoch(self, number: int, start: int) -> Iterator[TrainingBatch]:
        for _ in range(start, len(self)):
            self.together.wait(PATIENCE)
            yield TrainingBatch({}, torch.arange(4))


class Dropped(Objective):
    """The mean of a layer's outputs, some of which are dropped."""

    def loss(self, module: nn.Module, batch: TrainingBatch) -> Tensor:
        return nn.functional.dropout(module(torch.ones(len(batch.labels), 64))).mean()


def trained(seed: int, together: Barrier) -> History:
    with drawing(0):
        module = nn.Linear(64, 64)
    return fit(TrainSettings(seed=seed, progress=False), module, Batches(together), Dropped())


def test_trainings_in_threads_draw_as_each_alone_and_leave_the_generator() -> None:
    alone = [trained(seed, Barrier(1)).losses for seed in (0, 1)]
    state, losses, together = torch.get_rng_state(), {}, Barrier(3)

    def train(seed: int) -> None:
        losses[seed] = trained(seed, together).losses

    threads = [Thread(target=train, args=(seed,)) for seed in (0, 1)]
    for thread in threads:
        thread.start()
    for _ in range(2 * 3):
        # In the middle of both trainings, this thread draws.
        together.wait(PATIENCE)
        with drawing(7):
            torch.rand(3)
    for thread in threads:
        thread.join()
    assert [losses[0], losses[1]] == alone
    assert alone[0] != alone[1]
    assert torch.equal(torch.get_rng_state(), state)
