"""What threads change together is as before after the last of them, and after Ctrl-C at any moment."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import count
from types import ModuleType

import pytest
from torch import nn

from raison.models.stack import eval_mode, shared_changes, tap
from raison.models.stack.eval_mode import evaluating
from raison.models.stack.shared_changes import SharedChanges
from tests.conftest import ALL
from tests.interruptions import interrupted_at
from tests.tiny import TINY


@dataclass
class Lamp:
    colour: str


def painted() -> SharedChanges[Lamp, str]:
    def paint(lamp: Lamp, colour: str) -> None:
        lamp.colour = colour

    return SharedChanges(
        lambda lamp: lamp.colour, lambda lamp: paint(lamp, "red"), paint, lambda lamp: lamp.colour == "black"
    )


def test_the_last_context_undoes_the_change() -> None:
    changes, green, black = painted(), Lamp("green"), Lamp("black")
    one, two = changes.made([green, black]), changes.made([green])
    one.__enter__()
    two.__enter__()
    with changes.before() as before:
        assert (green.colour, before(green)) == ("red", "green")
    one.__exit__(None, None, None)
    assert green.colour == "red"
    two.__exit__(None, None, None)
    assert (green.colour, black.colour) == ("green", "black")


@pytest.mark.parametrize("leaving", [False, True])
def test_whoever_comes_between_an_interruption_and_its_clean_up_finds_the_change(leaving: bool) -> None:
    for moment in count():
        changes, lamp, user = painted(), Lamp("green"), object()
        if leaving:
            changes._make([lamp], user)
        work = partial(changes._undo, user) if leaving else partial(changes._make, [lamp], user)
        interrupted = interrupted_at(moment, work, shared_changes)
        with changes.made([lamp]):
            changes._undo(user)
            assert lamp.colour == "red"
        assert lamp.colour == "green"
        assert not changes._known
        if not interrupted:
            break
    assert moment > 3


def modes(model: nn.Module) -> list[bool]:
    return [module.training for module in model.modules()]


def test_an_interruption_at_any_moment_puts_every_mode_back() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Dropout(), nn.Dropout()))
    before = modes(model)

    def evaluate() -> None:
        with evaluating(model):
            assert not any(modes(model))

    _interrupt(evaluate, lambda: modes(model) == before, lambda: evaluating(model[1]), eval_mode, shared_changes)


@pytest.mark.parametrize("family", ["bert", "deberta_v2", "albert"])
def test_an_interruption_at_any_moment_leaves_no_tap(family: str) -> None:
    model, _ = TINY[family]()
    configs = tap.configs_of(model)
    before = [config._attn_implementation_internal for config in configs]

    def is_as_before() -> bool:
        return (
            [config._attn_implementation_internal for config in configs] == before
            and not tap._OPEN.get()
            and not any(module._forward_pre_hooks or module._forward_hooks for module in model.modules())
        )

    def record() -> None:
        with tap.tap(model):
            assert not is_as_before()

    # At every moment in one family, at some of all in the others: what differs is how many configurations there are.
    every = 1 if ALL or family == "bert" else 5
    _interrupt(record, is_as_before, lambda: evaluating(model), tap, shared_changes, every=every)


def _interrupt(
    work: Callable[[], None],
    is_as_before: Callable[[], bool],
    other: Callable[[], object],
    *code: ModuleType,
    every: int = 1,
) -> None:
    for moment in count(step=every):
        with other():  # type: ignore[attr-defined]
            interrupted = interrupted_at(moment, work, *code)
        assert is_as_before(), moment
        if not interrupted:
            break
    assert moment > 10
