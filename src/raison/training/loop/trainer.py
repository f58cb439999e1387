"""A small trainer that knows no language model: AdamW, warm-up and linear decay, evaluations, checkpoints, resume."""

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from raison.core.errors import InputError, NonFiniteError, OutOfMemoryError
from raison.models.passes.batching import TokenBudget, mean_over
from raison.progress import progress_bar
from raison.training.loop import checkpoint
from raison.training.loop.generators import OwnGenerators
from raison.training.loop.objective import Objective, TrainingBatch

RECENT = 50
"""The steps whose mean loss is shown."""
_FUSED = ("cpu", "cuda")
"""Devices for which AdamW is one kernel in every version of torch that is supported."""

Evaluator = Callable[[nn.Module], Mapping[str, float]]
"""Scores of the module by name, higher is better, NaN is worst; called in evaluation mode, without gradients."""


class Batches(Protocol):
    """The data of a run. Its order depends only on the epoch's number, so that a run can be resumed."""

    def __len__(self) -> int:
        """Batches per epoch, the same for every epoch."""

    def epoch(self, number: int, start: int) -> Iterator[TrainingBatch]:
        """The batches of epoch `number` (from 0) from batch `start` on."""


@dataclass(frozen=True, slots=True)
class StepDecay:
    """The learning rate is multiplied by `factor` after every `epochs` epochs."""

    factor: float
    epochs: int


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """How to train. Lengths are in steps; one step is one batch.

    `warmup` is the share of the schedule over which the rate grows from 0; it then falls linearly back to 0 at the
    end of `schedule_epochs`, by default the run's own epochs. `decay` takes the place of this schedule. `factors`
    are those of the rates of parameters, by the beginnings of their names. `clip` bounds the norm of the gradient
    (math.inf: not at all). `checkpoint` is the file to save to every `checkpoint_every` steps, at every evaluation
    and at the end of an epoch, and to resume from. `keep_best` keeps the weights of each score's best evaluation
    and ends with those of the first score. `identity` names what the settings do not show (data, base model):
    resuming requires the same.
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
    schedule_epochs: int | None = None
    decay: StepDecay | None = None
    factors: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """How a run is monitored: what is measured, how often, and when that ends the run early.

    An evaluation is made every `every` steps and after the last one, by default after every epoch. `patience`: stop
    after this number of evaluations in a row without an improved score. `stop` is called after every evaluation with
    all scores so far: True ends the run. Exceptions that it raises pass through; the run then resumes from before that
    evaluation. `kept` names the scores whose best weights are kept, by default all.
    """

    score: Evaluator
    every: int | None = None
    patience: int | None = None
    stop: Callable[[Sequence[Mapping[str, float]]], bool] | None = None
    kept: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class History:
    """The loss of every step; the scores of every evaluation, and the number of steps before each.

    `best` has each score's first best evaluation by the score's name, its weights included with keep_best.
    """

    losses: tuple[float, ...]
    scores: tuple[dict[str, float], ...]
    steps: tuple[int, ...]
    best: dict[str, checkpoint.Best]


def fit(
    settings: TrainSettings,
    module: nn.Module,
    batches: Batches,
    objective: Objective,
    evaluation: Evaluation | None = None,
) -> History:
    """Train `module` in place and leave it in evaluation mode.

    The same settings, data and initial weights give the same result on the same machine and number of threads, whether
    stopped and resumed or not. A run that `evaluation` ended early ends at once when started again. Only the module's
    own trainable parameters collect gradients: a model outside of it, through which the loss runs, does not. Torch's
    global generators are unchanged afterwards, and several threads may train at the same time.

    Raises NonFiniteError when the loss is no longer a number, InputError on invalid settings.
    """
    _check(settings, batches, evaluation)
    optimizer, generators = _optimizer(module, settings), OwnGenerators(settings.seed)
    try:
        return _TrainingRun(settings, module, optimizer, batches, objective, evaluation, generators).go()
    finally:
        module.eval()


def learning_rate(settings: TrainSettings, step: int, steps: int) -> float:
    """The rate of step `step` (from 0) of a schedule of `steps`."""
    warm = math.ceil(settings.warmup * steps)
    if step < warm:
        return settings.learning_rate * (step + 1) / warm
    return settings.learning_rate * (steps - step) / max(1, steps - warm)


@dataclass(slots=True)
class _TrainingRun:
    settings: TrainSettings
    module: nn.Module
    optimizer: torch.optim.Optimizer
    batches: Batches
    objective: Objective
    evaluation: Evaluation | None
    generators: OwnGenerators
    room: TokenBudget = field(default_factory=lambda: TokenBudget(sys.maxsize))
    """Number of rows per step."""

    def go(self) -> History:
        with self.generators.in_use():
            done = self._restore()
        steps = len(self.batches) * self.settings.epochs
        with progress_bar("training", steps, self.settings.progress, done.step) as advance:
            while done.step < steps and not done.stopped:
                number, start = divmod(done.step, len(self.batches))
                for batch in self.batches.epoch(number, start):
                    rate = self._rate(done.step)
                    with self.generators.in_use():
                        done.losses.append(self._step(batch, rate))
                    done.step += 1
                    advance(1, f"loss {_recent(done.losses):.3f}, rate {rate:.2g}")
                    with self.generators.in_use():
                        self._look(done, steps)
                    if done.stopped:
                        break
        if self.settings.keep_best and done.scores:
            first = next(iter(done.scores[0]))
            checkpoint.load_trainable_state(self.module, done.best[first].weights)
        return History(tuple(done.losses), tuple(done.scores), tuple(done.steps), done.best)

    def _rate(self, step: int) -> float:
        if self.settings.decay is not None:
            decay = self.settings.decay
            return self.settings.learning_rate * decay.factor ** (step // (len(self.batches) * decay.epochs))
        epochs = self.settings.schedule_epochs or self.settings.epochs
        return learning_rate(self.settings, step, len(self.batches) * epochs)

    def _step(self, batch: TrainingBatch, rate: float) -> float:
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["factor"]
        self.module.train()
        parameters = _trainable(self.module)
        loss, *gradients = self._loss_and_gradients(batch, parameters)
        value = float(loss)  # type: ignore[arg-type]
        if not math.isfinite(value):
            raise NonFiniteError(f"the loss became {value}: lower the learning rate (now at most {rate:g}).")
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        if math.isfinite(self.settings.clip):
            nn.utils.clip_grad_norm_(parameters, self.settings.clip)
        self.optimizer.step()
        return value

    def _loss_and_gradients(self, batch: TrainingBatch, parameters: list[nn.Parameter]) -> list[Tensor | None]:
        """The batch's loss, and its gradient for each parameter; computed in parts if memory runs out and parts add
        up."""

        def run(rows: list[int]) -> list[Tensor | None]:
            before = checkpoint.random_state()
            try:
                with self._diverging():
                    part = batch if len(rows) == len(batch.labels) else batch.select(rows)
                    loss = self.objective.loss(self.module, part)
                if not torch.isfinite(loss):
                    # There is no gradient to follow; the caller reports this.
                    return [loss.detach(), *[None] * len(parameters)]
                # Not backward(): it would also fill the gradients of other models that the loss runs through.
                return [loss.detach(), *torch.autograd.grad(loss, parameters, allow_unused=True)]
            except torch.OutOfMemoryError:
                # The parts draw the same random numbers as the whole batch.
                checkpoint.set_random_state(before)
                raise

        count = len(batch.labels)
        if self.objective.by_row:
            return mean_over(self.room, range(count), run)
        try:
            return run(list(range(count)))
        except torch.OutOfMemoryError:
            raise OutOfMemoryError(
                f"a step on {count} rows does not fit into the device's memory, and its loss compares rows: use "
                "smaller batches (--batch-size), shorter texts (--max-tokens), or a device with more memory."
            ) from None

    @contextmanager
    def _diverging(self) -> Iterator[None]:
        """After a step, numbers that are not finite are the training's doing and not the given model's."""
        try:
            yield
        except NonFiniteError as error:
            if not self.optimizer.state:
                raise
            rate = f"{self.settings.learning_rate:g}"
            raise NonFiniteError(
                f"the training diverged: lower the learning rate (now at most {rate}). {error}"
            ) from error

    def _look(self, done: checkpoint.Progress, steps: int) -> None:
        """Evaluate and save what is due after a step; in this order, so that no resume evaluates again."""
        epoch_ends = done.step % len(self.batches) == 0
        watch = self.evaluation
        every = None if watch is None else watch.every
        due = epoch_ends if every is None else done.step % every == 0 or done.step == steps
        if watch is not None and due:
            self._evaluate(watch, done)
        if due or epoch_ends or done.step % self.settings.checkpoint_every == 0:
            self._save(done)

    def _evaluate(self, evaluation: Evaluation, done: checkpoint.Progress) -> None:
        self.module.eval()
        with torch.no_grad(), self._diverging():
            scores = {name: float(value) for name, value in evaluation.score(self.module).items()}
        if not scores:
            raise InputError("the evaluation gave no scores: it must return at least one, by name.")
        done.scores.append(scores)
        done.steps.append(done.step)
        better = [name for name, value in scores.items() if _improves(value, done.best.get(name))]
        wanted = [name for name in better if evaluation.kept is None or name in evaluation.kept]
        # One copy for all scores that are best now.
        weights = checkpoint.trainable_state(self.module) if wanted and self.settings.keep_best else {}
        done.best.update(
            {name: checkpoint.Best(done.step, scores[name], weights if name in wanted else {}) for name in better}
        )
        done.stopped = evaluation.stop is not None and bool(evaluation.stop(tuple(done.scores)))
        if evaluation.patience is not None:
            last = max(best.step for best in done.best.values())
            done.stopped |= sum(step > last for step in done.steps) >= evaluation.patience

    def _save(self, done: checkpoint.Progress) -> None:
        if self.settings.checkpoint is not None:
            checkpoint.save(self.settings.checkpoint, self._name(), self.module, self.optimizer, done)

    def _restore(self) -> checkpoint.Progress:
        if self.settings.checkpoint is None:
            return checkpoint.Progress()
        return checkpoint.restore(self.settings.checkpoint, self._name(), self.module, self.optimizer)

    def _name(self) -> str:
        # Without the file's path and the interval, which may change between two starts of the same run.
        s = self.settings
        numbers = (s.epochs, s.schedule_epochs, s.learning_rate, s.weight_decay, s.warmup, s.clip, s.seed, s.keep_best)
        decay = None if s.decay is None else astuple(s.decay)
        extras = tuple(extra for extra in (decay, tuple(s.factors.items())) if extra)
        watched = None if self.evaluation is None else (self.evaluation.every, self.evaluation.patience)
        shown = (*numbers, *extras)
        return f"{shown} {len(self.batches)} batches, {self.objective}, evaluated {watched}, {s.identity}"


def _check(settings: TrainSettings, batches: Batches, evaluation: Evaluation | None) -> None:
    if len(batches) == 0:
        raise InputError("there is nothing to train on: no rows.")
    if settings.epochs < 1 or settings.checkpoint_every < 1:
        raise InputError("epochs and checkpoint_every must be at least 1.")
    if settings.schedule_epochs is not None and settings.schedule_epochs < settings.epochs:
        raise InputError(
            f"schedule_epochs must be at least the {settings.epochs} epochs of the run; got {settings.schedule_epochs}."
        )
    if settings.learning_rate <= 0:
        raise InputError(f"the learning rate must be positive; got {settings.learning_rate}.")
    if not settings.clip > 0:
        raise InputError(f"clip must be positive, and math.inf for no clipping; got {settings.clip}.")
    if evaluation is None:
        if settings.keep_best:
            raise InputError("keep_best needs an evaluation, which decides what is best.")
    elif any(length is not None and length < 1 for length in (evaluation.every, evaluation.patience)):
        raise InputError("every and patience of an evaluation must be at least 1.")


def _improves(value: float, best: checkpoint.Best | None) -> bool:
    # Of evaluations that say nothing, none is better than the last.
    return best is None or math.isnan(best.value) or comparable(value) > comparable(best.value)


def comparable(value: float) -> float:
    """A score that can be compared: NaN, of a model that failed, is below all others."""
    return -math.inf if math.isnan(value) else value


def _trainable(module: nn.Module) -> list[nn.Parameter]:
    return [parameter for parameter in module.parameters() if parameter.requires_grad]


def _optimizer(module: nn.Module, settings: TrainSettings) -> torch.optim.AdamW:
    named = [(name, parameter) for name, parameter in module.named_parameters() if parameter.requires_grad]
    if not named:
        raise InputError("the module has no trainable parameters.")
    groups: list[dict[str, Any]] = []
    for prefix, factor in {**settings.factors, "": 1.0}.items():
        matching = [parameter for name, parameter in named if name.startswith(prefix)]
        named = [(name, parameter) for name, parameter in named if not name.startswith(prefix)]
        decay = 0.0 if prefix else settings.weight_decay
        groups.append({"params": [p for p in matching if p.ndim > 1], "weight_decay": decay, "factor": factor})
        # Weight decay pulls towards zero, which is not the simplest value of a bias, a norm's scale or a coefficient.
        groups.append({"params": [p for p in matching if p.ndim <= 1], "weight_decay": 0.0, "factor": factor})
    # One kernel for all parameters: a tenth of the time if the table of word embeddings is most of the model.
    fused = all(parameter.device.type in _FUSED for parameter in _trainable(module))
    return torch.optim.AdamW([group for group in groups if group["params"]], lr=settings.learning_rate, fused=fused)


def _recent(losses: list[float]) -> float:
    tail = losses[-RECENT:]
    return sum(tail) / len(tail)
