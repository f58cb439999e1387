"""A small trainer that knows no language model: AdamW, warm-up and linear decay, checkpoints, resume."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from torch import nn

from raison.core.errors import InputError, NonFiniteError
from raison.training import checkpoint
from raison.training.objective import Batch, Objective

Evaluator = Callable[[nn.Module], float]
"""A score of the module, higher is better; called in evaluation mode, without gradients, after every epoch."""


class Batches(Protocol):
    """The data of a run. Its order depends on nothing but the epoch's number, so that a run can be resumed."""

    def __len__(self) -> int:
        """Batches per epoch, the same for every epoch."""

    def epoch(self, number: int, start: int) -> Iterator[Batch]:
        """The batches of epoch `number` (from 0) from batch `start` on."""


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """How to train. Lengths in steps, one step being one batch.

    `warmup` is the share of all steps over which the rate grows from 0; it then falls linearly back to 0.
    `clip` bounds the norm of the gradient. `checkpoint` is the file to save to every `checkpoint_every` steps and
    at the end of an epoch, and to resume from. `keep_best` ends with the weights of the epoch with the best score.
    `identity` names what the settings do not show (data, base model): resuming demands the same.
    """

    epochs: int = 2
    learning_rate: float = 1e-3
    weight_decay: float = 0.01
    warmup: float = 0.06
    clip: float = 1.0
    seed: int = 0
    keep_best: bool = False
    checkpoint: Path | None = None
    checkpoint_every: int = 200
    identity: str = ""
    progress: bool = True


@dataclass(frozen=True, slots=True)
class History:
    """The loss of every step and the evaluator's score after every epoch."""

    losses: tuple[float, ...]
    scores: tuple[float, ...]


def fit(
    settings: TrainSettings,
    module: nn.Module,
    batches: Batches,
    objective: Objective,
    evaluator: Evaluator | None = None,
) -> History:
    """Train `module` in place and leave it in evaluation mode.

    The same settings, data and initial weights give the same result on the same machine and number of threads,
    stopped and resumed or not. Torch's global generators are as before afterwards.
    Raises NonFiniteError when the loss is no longer a number, InputError on settings that cannot be used.
    """
    _check(settings, batches, evaluator)
    optimizer = _optimizer(module, settings)
    before = checkpoint.random_state()
    torch.manual_seed(settings.seed)
    try:
        return _Run(settings, module, optimizer, batches, objective, evaluator).go()
    finally:
        checkpoint.set_random_state(before)
        module.eval()


def learning_rate(settings: TrainSettings, step: int, steps: int) -> float:
    """The rate of step `step` (from 0) of `steps`."""
    warm = math.ceil(settings.warmup * steps)
    if step < warm:
        return settings.learning_rate * (step + 1) / warm
    return settings.learning_rate * (steps - step) / max(1, steps - warm)


@dataclass(slots=True)
class _Run:
    settings: TrainSettings
    module: nn.Module
    optimizer: torch.optim.Optimizer
    batches: Batches
    objective: Objective
    evaluator: Evaluator | None

    def go(self) -> History:
        done = self._restore()
        steps = len(self.batches) * self.settings.epochs
        with _bar(self.settings.progress) as bar:
            task = bar.add_task("training", total=steps, completed=done.step, loss="")
            while done.step < steps:
                number, start = divmod(done.step, len(self.batches))
                for batch in self.batches.epoch(number, start):
                    done.losses.append(self._step(batch, learning_rate(self.settings, done.step, steps)))
                    done.step += 1
                    bar.update(task, advance=1, loss=f"loss {_recent(done.losses):.3f}")
                    if done.step % self.settings.checkpoint_every == 0 and done.step % len(self.batches):
                        self._save(done)
                self._finish_epoch(done)
        if done.best:
            checkpoint.load_trainable_state(self.module, done.best)
        return History(tuple(done.losses), tuple(done.scores))

    def _step(self, batch: Batch, rate: float) -> float:
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.module.train()
        loss = self.objective.loss(self.module, batch)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise NonFiniteError(f"the loss became {value}: lower the learning rate (now at most {rate:g}).")
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(_trainable(self.module), self.settings.clip)
        self.optimizer.step()
        return value

    def _finish_epoch(self, done: checkpoint.Progress) -> None:
        if self.evaluator is not None:
            self.module.eval()
            with torch.no_grad():
                score = self.evaluator(self.module)
            if self.settings.keep_best and score > max(done.scores, default=-math.inf):
                done.best = checkpoint.trainable_state(self.module)
            done.scores.append(score)
        self._save(done)

    def _save(self, done: checkpoint.Progress) -> None:
        if self.settings.checkpoint is not None:
            checkpoint.save(self.settings.checkpoint, self._name(), self.module, self.optimizer, done)

    def _restore(self) -> checkpoint.Progress:
        if self.settings.checkpoint is None:
            return checkpoint.Progress()
        return checkpoint.restore(self.settings.checkpoint, self._name(), self.module, self.optimizer)

    def _name(self) -> str:
        # Not the file's place nor the interval: they may change between two starts of the same run.
        s = self.settings
        numbers = (s.epochs, s.learning_rate, s.weight_decay, s.warmup, s.clip, s.seed, s.keep_best)
        return f"{numbers} {len(self.batches)} batches, {self.objective}, {s.identity}"


def _check(settings: TrainSettings, batches: Batches, evaluator: Evaluator | None) -> None:
    if len(batches) == 0:
        raise InputError("there is nothing to train on: no rows.")
    if settings.epochs < 1 or settings.checkpoint_every < 1:
        raise InputError("epochs and checkpoint_every must be at least 1.")
    if settings.learning_rate <= 0:
        raise InputError(f"the learning rate must be positive; got {settings.learning_rate}.")
    if settings.keep_best and evaluator is None:
        raise InputError("keep_best needs an evaluator that scores each epoch.")


def _trainable(module: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in module.parameters() if parameter.requires_grad]


def _optimizer(module: nn.Module, settings: TrainSettings) -> torch.optim.AdamW:
    parameters = _trainable(module)
    if not parameters:
        raise InputError("the module has no trainable parameters.")
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": settings.weight_decay},
        # Decay pulls towards zero, which for a bias or a norm's scale is not the simplest function.
        {"params": [p for p in parameters if p.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=settings.learning_rate)


def _recent(losses: list[float], window: int = 50) -> float:
    tail = losses[-window:]
    return sum(tail) / len(tail)


def _bar(visible: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[loss]}"),
        console=Console(stderr=True),
        disable=not visible,
    )
