"""Points in the plane, a small network to learn them, and an objective that can die: for the trainer's tests."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from raison.training.loop.objective import Objective, TrainingBatch
from raison.training.loop.trainer import TrainSettings
from raison.training.objectives.cross_entropy import CrossEntropy


class Killed(BaseException):
    """Stands for the end of the process."""


@dataclass(frozen=True)
class Mortal(Objective):
    """Cross-entropy that dies at one of its calls; equal to the immortal one where names are compared."""

    die: Callable[[], bool]

    def __repr__(self) -> str:
        return "mortal"

    def loss(self, module: nn.Module, batch: TrainingBatch) -> Tensor:
        if self.die():
            raise Killed
        return CrossEntropy().loss(module, batch)


class Points:
    """Twenty batches of random points in the plane, labelled by the half they lie in."""

    def __len__(self) -> int:
        return 20

    def epoch(self, number: int, start: int) -> Iterator[TrainingBatch]:
        generator = torch.Generator().manual_seed(number)
        for index in range(20):
            points = torch.randn(8, 2, generator=generator)
            if index >= start:
                yield TrainingBatch({"points": points}, (points[:, 0] > 0).long())


class Net(nn.Module):
    """Two layers with dropout, so that the random state matters, and a frozen parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 2))
        self.frozen = nn.Parameter(torch.ones(3), requires_grad=False)

    def forward(self, inputs: dict[str, Tensor]) -> Tensor:
        return self.layers(inputs["points"])


def net() -> Net:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return Net()


def same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def dies_at(call: int) -> Callable[[], bool]:
    calls = iter(range(1, 10**6))
    return lambda: next(calls) == call


PLAN = TrainSettings(epochs=3, learning_rate=0.02, seed=5, checkpoint_every=7, progress=False)
