"""The trainer on a small network and random points: evaluations, kills and resumes, settings."""

import math
import resource
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from raison.core.errors import DataError, InputError, NonFiniteError, OutOfMemoryError
from raison.training.loop import checkpoint
from raison.training.loop.objective import Objective, TrainingBatch
from raison.training.loop.trainer import Evaluation, History, TrainSettings, fit
from raison.training.objectives.cross_entropy import CrossEntropy
from tests.points import PLAN, Killed, Mortal, Net, Points, dies_at, net, same


def test_learning_reduces_the_loss_and_leaves_the_random_state_alone() -> None:
    module = net()
    before = torch.get_rng_state()
    history = fit(PLAN, module, Points(), CrossEntropy())
    assert torch.equal(torch.get_rng_state(), before)
    assert len(history.losses) == 60
    assert sum(history.losses[-10:]) < 0.6 * sum(history.losses[:10])
    assert not module.training
    assert torch.equal(module.frozen, torch.ones(3))


def measured(trained: nn.Module) -> dict[str, float]:
    """Two scores that the weights decide: on one seed's points, and how small the weights are."""
    assert not trained.training
    assert not torch.is_grad_enabled()
    batches = list(Points().epoch(99, 0))
    right = sum(float((trained(batch.inputs).argmax(-1) == batch.labels).float().mean()) for batch in batches)
    return {"right": right / len(batches), "small": -float(trained.layers[0].weight.norm())}


class Played:
    """Scores from a list, whatever the module; remembers the module's weights at each."""

    def __init__(self, **scores: tuple[float, ...]) -> None:
        self.scores = iter([dict(zip(scores, row, strict=True)) for row in zip(*scores.values(), strict=True)])
        self.states: list[dict[str, Tensor]] = []

    def __call__(self, trained: nn.Module) -> Mapping[str, float]:
        self.states.append(checkpoint.trainable_state(trained))
        return next(self.scores)


def same_history(one: History, other: History) -> bool:
    return one == other and all(same(best.weights, other.best[name].weights) for name, best in one.best.items())


@pytest.mark.parametrize("every", [None, 7, 9, 50])
@pytest.mark.parametrize("call", [3, 8, 21, 28, 45, 60])
def test_a_killed_run_ends_as_an_uninterrupted_one(tmp_path: Path, call: int, every: int | None) -> None:
    whole, stopped = net(), net()
    plan, watch = replace(PLAN, keep_best=True), Evaluation(measured, every=every)
    wanted = fit(plan, whole, Points(), Mortal(lambda: False), watch)
    plan = replace(plan, checkpoint=tmp_path / "run" / "state")
    with pytest.raises(Killed):
        fit(plan, stopped, Points(), Mortal(dies_at(call)), watch)
    stopped = net()
    torch.rand(13)
    found = fit(plan, stopped, Points(), Mortal(lambda: False), watch)
    assert same_history(found, wanted)
    assert same(stopped.state_dict(), whole.state_dict())
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["state"]


@pytest.mark.parametrize(("every", "steps"), [(None, (20, 40, 60)), (25, (25, 50, 60)), (30, (30, 60)), (99, (60,))])
def test_when_evaluations_are_made(every: int | None, steps: tuple[int, ...]) -> None:
    history = fit(PLAN, net(), Points(), CrossEntropy(), Evaluation(measured, every=every))
    assert history.steps == steps
    assert len(history.scores) == len(steps)
    unwatched = fit(PLAN, net(), Points(), CrossEntropy())
    assert history.losses == unwatched.losses
    assert (unwatched.scores, unwatched.steps, unwatched.best) == ((), (), {})


def test_an_evaluation_is_never_made_twice(tmp_path: Path) -> None:
    plan = replace(PLAN, checkpoint=tmp_path / "state")
    score = Played(a=(0.0, 1.0, 2.0))
    # The first evaluation is at a step at which a checkpoint is due, too.
    with pytest.raises(Killed):
        fit(plan, net(), Points(), Mortal(dies_at(22)), Evaluation(score, every=21))
    history = fit(plan, net(), Points(), Mortal(lambda: False), Evaluation(score, every=21))
    assert history.scores == ({"a": 0.0}, {"a": 1.0}, {"a": 2.0})


def test_each_score_keeps_its_best_weights() -> None:
    module = net()
    nan = math.nan
    score = Played(a=(0.5, 0.9, 0.7, 0.9), b=(3.0, 3.0, nan, 4.0), c=(nan, -1.0, -2.0, -3.0), d=(nan,) * 4)
    history = fit(replace(PLAN, keep_best=True), module, Points(), CrossEntropy(), Evaluation(score, every=15))
    assert [row["a"] for row in history.scores] == [0.5, 0.9, 0.7, 0.9]
    assert {name: best.step for name, best in history.best.items()} == {"a": 30, "b": 60, "c": 30, "d": 60}
    assert [history.best[name].value for name in "abc"] == [0.9, 4.0, -1.0]
    states = dict(zip((15, 30, 45, 60), score.states, strict=True))
    for best in history.best.values():
        assert same(best.weights, states[best.step])
    assert history.best["a"].weights is history.best["c"].weights
    # The module ends with the best of the first score.
    assert same(checkpoint.trainable_state(module), states[30])
    assert not same(states[30], states[60])


def test_weights_are_kept_only_if_asked() -> None:
    module, score = net(), Played(a=(0.5, 0.9, 0.7))
    history = fit(PLAN, module, Points(), CrossEntropy(), Evaluation(score))
    assert history.best == {"a": checkpoint.Best(40, 0.9)}
    assert history.best["a"].weights == {}
    assert same(checkpoint.trainable_state(module), score.states[2])


def test_shared_weights_are_stored_once(tmp_path: Path) -> None:
    plan = replace(PLAN, epochs=1, keep_best=True)
    tensors = []
    for name, score in (("one", Played(a=(1.0,))), ("three", Played(a=(1.0,), b=(2.0,), c=(3.0,)))):
        path = tmp_path / name
        fit(replace(plan, checkpoint=path), net(), Points(), CrossEntropy(), Evaluation(score))
        with zipfile.ZipFile(path) as stored:
            tensors.append(sum("/data/" in entry for entry in stored.namelist()))
    best = fit(replace(plan, checkpoint=path), net(), Points(), CrossEntropy(), Evaluation(measured)).best
    assert best["a"].weights is best["b"].weights is best["c"].weights
    assert tensors[0] == tensors[1] > len(best["a"].weights)


def test_patience_ends_a_run_and_a_restart_agrees(tmp_path: Path) -> None:
    plan = replace(PLAN, keep_best=True, checkpoint=tmp_path / "state")
    score = Played(a=(1.0, 0.5, 0.9, 0.8, 0.9), b=(1.0, 2.0, 2.0, 2.0, math.nan))
    module = net()
    watch = Evaluation(score, every=8, patience=3)
    history = fit(plan, module, Points(), Mortal(lambda: False), watch)
    assert history.steps == (8, 16, 24, 32, 40)
    assert len(history.losses) == 40
    again = net()
    # Neither trained nor evaluated again: it would die at the first step, and no scores are left to play.
    found = fit(plan, again, Points(), Mortal(lambda: True), watch)
    assert repr(found) == repr(history)
    assert all(same(best.weights, history.best[name].weights) for name, best in found.best.items())
    assert same(again.state_dict(), module.state_dict())


def test_a_question_ends_a_run(tmp_path: Path) -> None:
    plan = replace(PLAN, checkpoint=tmp_path / "state")
    asked = []

    def stop(scores: tuple[Mapping[str, float], ...]) -> bool:
        asked.append([row["a"] for row in scores])
        if scores[-1]["a"] == 9:
            raise Killed
        return scores[-1]["a"] == 3

    with pytest.raises(Killed):
        fit(plan, net(), Points(), CrossEntropy(), Evaluation(Played(a=(1, 9)), every=12, stop=stop))
    history = fit(plan, net(), Points(), CrossEntropy(), Evaluation(Played(a=(2, 3)), every=12, stop=stop))
    assert asked == [[1], [1, 9], [1, 2], [1, 2, 3]]
    assert history.steps == (12, 24, 36)
    assert history.scores == ({"a": 1.0}, {"a": 2.0}, {"a": 3.0})
    assert len(history.losses) == 36


@dataclass(frozen=True)
class Through(Objective):
    """Cross-entropy of an outside model that reads what the module says."""

    outside: nn.Module

    def loss(self, module: nn.Module, batch: TrainingBatch) -> Tensor:
        return nn.functional.cross_entropy(self.outside(module(batch.inputs)), batch.labels)


def test_a_model_outside_collects_no_gradients() -> None:
    # A head from any random state could turn the points so that they are harder to tell apart.
    with torch.random.fork_rng():
        torch.manual_seed(0)
        outside = nn.Linear(2, 2)
    module = net()
    assert all(parameter.requires_grad for parameter in outside.parameters())
    before = checkpoint.trainable_state(outside)
    module.unused = nn.Parameter(torch.ones(2, 2))
    history = fit(PLAN, module, Points(), Through(outside))
    assert sum(history.losses[-10:]) < 0.6 * sum(history.losses[:10])
    assert all(parameter.grad is None for parameter in outside.parameters())
    assert same(checkpoint.trainable_state(outside), before)
    # Without a gradient there is no step, and so no decay.
    assert module.unused.grad is None
    assert torch.equal(module.unused, torch.ones(2, 2))


def test_a_schedule_may_be_longer_than_the_run() -> None:
    half = fit(replace(PLAN, epochs=1, schedule_epochs=3), net(), Points(), CrossEntropy())
    whole = fit(PLAN, net(), Points(), CrossEntropy())
    short = fit(replace(PLAN, epochs=1), net(), Points(), CrossEntropy())
    assert half.losses == whole.losses[:20]
    assert short.losses != half.losses


def test_gradients_are_clipped_unless_told_not_to() -> None:
    def loss_with(clip: float) -> list[float]:
        return list(fit(replace(PLAN, clip=clip), net(), Points(), CrossEntropy()).losses)

    assert loss_with(math.inf) == loss_with(1e9)
    assert loss_with(math.inf) != loss_with(0.1)


def test_a_checkpoint_of_another_run_is_refused(tmp_path: Path) -> None:
    plan = replace(PLAN, epochs=1, checkpoint=tmp_path / "state")
    fit(plan, net(), Points(), CrossEntropy())
    with pytest.raises(InputError, match="other settings or data"):
        fit(replace(plan, learning_rate=0.01), net(), Points(), CrossEntropy())
    with pytest.raises(InputError, match="other settings or data"):
        fit(replace(plan, identity="other data"), net(), Points(), CrossEntropy())
    with pytest.raises(InputError, match="other settings or data"):
        fit(replace(plan, schedule_epochs=2), net(), Points(), CrossEntropy())
    with pytest.raises(InputError, match="other settings or data"):
        fit(plan, net(), Points(), CrossEntropy(), Evaluation(measured, every=5))
    whole = (tmp_path / "state").read_bytes()
    place = len(whole) // 2
    flipped = bytes([*whole[:place], whole[place] ^ 64, *whole[place + 1 :]])
    for damaged in (b"nonsense", b"", flipped, whole[:-1]):
        (tmp_path / "state").write_bytes(damaged)
        with pytest.raises(
            InputError, match="is not a checkpoint of this trainer, or was changed after it was written"
        ):
            fit(plan, net(), Points(), CrossEntropy())


def test_settings_that_cannot_be_used() -> None:
    for wrong in (
        {"epochs": 0},
        {"learning_rate": 0.0},
        {"keep_best": True},
        {"checkpoint_every": 0},
        {"schedule_epochs": 2},
        {"clip": 0.0},
        {"clip": math.nan},
    ):
        with pytest.raises(InputError):
            fit(replace(PLAN, **wrong), net(), Points(), CrossEntropy())
    for watch in (Evaluation(measured, every=0), Evaluation(measured, patience=0), Evaluation(lambda module: {})):
        with pytest.raises(InputError):
            fit(PLAN, net(), Points(), CrossEntropy(), watch)
    frozen = net().requires_grad_(False)
    with pytest.raises(InputError, match="no trainable parameters"):
        fit(PLAN, frozen, Points(), CrossEntropy())


def test_a_loss_that_is_no_number_stops_the_run() -> None:
    module = net()
    nn.init.constant_(module.layers[0].weight, float("nan"))
    with pytest.raises(NonFiniteError, match="lower the learning rate"):
        fit(PLAN, module, Points(), CrossEntropy())


class Breaking(CrossEntropy):
    """The loss of a model that refuses its own numbers, from one call on."""

    def __init__(self, call: int) -> None:
        self.calls, self.call = 0, call

    def loss(self, module: nn.Module, batch: TrainingBatch) -> Tensor:
        self.calls += 1
        if self.calls > self.call:
            raise NonFiniteError("net returned NaN. Check the weights.")
        return super().loss(module, batch)


def test_a_model_that_breaks_while_it_learns_is_the_training_s_fault() -> None:
    """In a step and in an evaluation; what breaks before the first step is the given model's."""
    said = r"^the training diverged: lower the learning rate \(now at most [\d.]+\)\. net returned NaN"
    with pytest.raises(NonFiniteError, match=said):
        fit(PLAN, net(), Points(), Breaking(5))
    with pytest.raises(NonFiniteError, match="^net returned NaN"):
        fit(PLAN, net(), Points(), Breaking(0))

    def score(module: nn.Module) -> Mapping[str, float]:
        raise NonFiniteError("net returned NaN. Check the weights.")

    with pytest.raises(NonFiniteError, match=said):
        fit(PLAN, net(), Points(), CrossEntropy(), Evaluation(score))


@pytest.mark.parametrize("room", [2_000, 8_000, 20_000, 33_000, 50_000, 90_000])
def test_a_checkpoint_for_which_there_is_no_room_says_so(tmp_path: Path, room: int) -> None:
    """Wherever the file ends: torch has errors of its own for some places."""
    module = nn.Sequential(*[nn.Linear(64, 64) for _ in range(8)])
    optimizer = torch.optim.AdamW(module.parameters())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        with pytest.raises(DataError, match="cannot write to .*: File too large"):
            checkpoint.save(tmp_path / "training", "run", module, optimizer, checkpoint.Progress())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not list(tmp_path.iterdir())


def test_only_the_named_scores_keep_weights() -> None:
    module, score = net(), Played(a=(0.5, 0.9, 0.7), b=(3.0, 2.0, 4.0))
    watch = Evaluation(score, kept=("a",))
    history = fit(replace(PLAN, keep_best=True), module, Points(), CrossEntropy(), watch)
    assert {name: best.step for name, best in history.best.items()} == {"a": 40, "b": 60}
    assert history.best["b"].weights == {}
    assert same(history.best["a"].weights, score.states[1])
    assert same(checkpoint.trainable_state(module), score.states[1])


@dataclass(frozen=True)
class Noisy(Objective):
    """A number per row with a draw per row."""

    @property
    def by_row(self) -> bool:
        return True

    def loss(self, module: nn.Module, batch: TrainingBatch) -> Tensor:
        noise = torch.randint(2**62, batch.labels.shape) / 2**62
        losses = nn.functional.cross_entropy(module(batch.inputs), batch.labels, reduction="none")
        return (losses * noise).mean()


@dataclass(frozen=True)
class Compared(Noisy):
    """The same, said to compare rows."""

    @property
    def by_row(self) -> bool:
        return False


class Narrow(Net):
    """Memory for three rows."""

    tried = 0

    def forward(self, inputs: dict[str, Tensor]) -> Tensor:
        self.tried += 1
        if len(inputs["points"]) > 3:
            raise torch.OutOfMemoryError("no room")
        return super().forward(inputs)


def without_dropout(module: Net) -> Net:
    module.layers[2].p = 0.0
    return module


def test_a_batch_that_does_not_fit_is_taken_in_parts_that_add_up() -> None:
    wide, narrow = without_dropout(net()), without_dropout(Narrow())
    narrow.load_state_dict(wide.state_dict())
    plan = TrainSettings(epochs=2, progress=False)
    expected, found = (fit(plan, module, Points(), Noisy()) for module in (wide, narrow))
    assert found.losses == pytest.approx(expected.losses, abs=1e-6)
    for one, other in zip(narrow.parameters(), wide.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)
    # Eight rows, four, two and two, two and two; from then on two at a time.
    assert narrow.tried == 7 + 39 * 4


def test_a_batch_that_does_not_fit_and_compares_rows_is_one_line() -> None:
    with pytest.raises(OutOfMemoryError, match="a step on 8 rows does not fit .* smaller batches"):
        fit(TrainSettings(progress=False), Narrow(), Points(), Compared())
