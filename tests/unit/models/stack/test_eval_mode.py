"""Evaluation mode and silence, shared by threads."""

import threading
import warnings

import pytest
import torch
from torch import nn
from transformers.utils import logging as hf_logging

from raison.models.stack.eval_mode import drawing, evaluating, quiet
from tests.patience import PATIENCE
from tests.threads import in_another


def trainable() -> nn.Sequential:
    """The second part was never training."""
    return nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).eval(), nn.Sequential(nn.Dropout(0.5)))


def modes(model: nn.Module) -> list[bool]:
    return [module.training for module in model.modules()]


def test_modules_that_were_training_train_again() -> None:
    model = trainable()
    before = modes(model)
    with evaluating(model):
        assert not any(modes(model))
        with evaluating(model[2]), evaluating(model):
            assert not any(modes(model))
        assert not any(modes(model))
    assert modes(model) == before
    with pytest.raises(RuntimeError, match="on purpose"), evaluating(model):
        raise RuntimeError("on purpose")
    assert modes(model) == before


def test_a_part_that_is_evaluated_longer_than_the_whole() -> None:
    model = trainable()
    before = modes(model)
    whole, part = evaluating(model), evaluating(model[2])
    whole.__enter__()
    part.__enter__()
    whole.__exit__(None, None, None)
    assert modes(model) == [True, True, False, False, False]
    part.__exit__(None, None, None)
    assert modes(model) == before


def test_the_last_thread_lets_it_train_again() -> None:
    model = trainable()
    before = modes(model)
    entered, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with evaluating(model):
            entered.set()
            assert leave.wait(PATIENCE)

    thread = threading.Thread(target=stay)
    with evaluating(model):
        thread.start()
        assert entered.wait(PATIENCE)
    assert not any(modes(model))
    leave.set()
    thread.join()
    assert modes(model) == before


def test_silence_ends_with_the_last_thread() -> None:
    level, filters = hf_logging.get_verbosity(), list(warnings.filters)
    one, two = quiet(), quiet()
    one.__enter__()
    in_another(lambda: two.__enter__())
    one.__exit__(None, None, None)
    assert hf_logging.get_verbosity() == hf_logging.ERROR
    in_another(lambda: two.__exit__(None, None, None))
    assert hf_logging.get_verbosity() == level
    assert warnings.filters == filters


def test_random_numbers_are_drawn_by_one_thread_at_a_time() -> None:
    before = torch.get_rng_state()
    with drawing(7):
        expected = torch.rand(3)
    found = []

    def draw() -> None:
        with drawing(7):
            found.append(torch.rand(3))

    with drawing(5):
        thread = threading.Thread(target=draw)
        thread.start()
        thread.join(0.05)
        assert thread.is_alive()
        first = torch.rand(3)
    thread.join()
    with drawing(5):
        assert torch.equal(torch.rand(3), first)
    assert torch.equal(found[0], expected)
    assert torch.equal(torch.get_rng_state(), before)
