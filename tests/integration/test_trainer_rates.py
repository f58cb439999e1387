"""Rates of learning: warm-up, decay, and rates of single parameters."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from raison.core.errors import InputError
from raison.training.loop.trainer import StepDecay, TrainSettings, fit, learning_rate
from raison.training.objectives.cross_entropy import CrossEntropy
from tests.points import PLAN, Killed, Mortal, Points, dies_at, net, same


def test_the_rate_rises_then_falls_to_nothing() -> None:
    rates = [learning_rate(replace(PLAN, learning_rate=1.0, warmup=0.2), step, 10) for step in range(10)]
    assert rates[:3] == [0.5, 1.0, 1.0]
    assert rates[2:] == pytest.approx([1 - n / 8 for n in range(8)])


def rates_of(plan: TrainSettings, module: nn.Module, monkeypatch: pytest.MonkeyPatch) -> list[list[float]]:
    """The rate of every group of parameters, at every step."""
    found: list[list[float]] = []
    step = torch.optim.AdamW.step

    def noting(optimizer: torch.optim.AdamW) -> None:
        found.append([group["lr"] for group in optimizer.param_groups])
        step(optimizer)

    monkeypatch.setattr(torch.optim.AdamW, "step", noting)
    fit(plan, module, Points(), CrossEntropy())
    return found


def test_decay_multiplies_the_rate_after_so_many_epochs(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = replace(PLAN, epochs=5, learning_rate=0.02, warmup=0.5, decay=StepDecay(0.5, 2))
    found = rates_of(plan, net(), monkeypatch)
    # Neither warm-up nor a fall to nothing.
    expected = [0.02] * 40 + [0.01] * 40 + [0.005] * 20
    assert [rates[0] for rates in found] == pytest.approx(expected)
    assert all(len(set(rates)) == 1 for rates in found)


def test_parameters_may_have_rates_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = replace(PLAN, epochs=2, decay=StepDecay(0.1, 1), factors={"layers.3.": 10.0, "layers.0.bias": 0.0})
    module = net()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    found = rates_of(plan, module, monkeypatch)
    assert {round(rate, 9) for rate in found[0]} == {0.02, 0.2, 0.0}
    assert {round(rate, 9) for rate in found[-1]} == {0.002, 0.02, 0.0}
    assert torch.equal(module.layers[0].bias, before["layers.0.bias"])
    assert not torch.equal(module.layers[0].weight, before["layers.0.weight"])
    moved = {name: float((value - before[name]).abs().max()) for name, value in module.state_dict().items()}
    assert moved["layers.3.weight"] > 3 * moved["layers.0.weight"]


def test_rates_of_one_are_plain_training() -> None:
    # Biases have no decay of weights, with a rate of their own or without.
    plain = fit(PLAN, net(), Points(), CrossEntropy())
    named = fit(replace(PLAN, factors={"layers.0.bias": 1.0}), net(), Points(), CrossEntropy())
    assert named.losses == plain.losses


def test_a_killed_run_with_decay_and_factors_ends_as_an_uninterrupted_one(tmp_path: Path) -> None:
    plan = replace(PLAN, decay=StepDecay(0.5, 1), factors={"layers.3.": 5.0})
    whole, stopped = net(), net()
    wanted = fit(plan, whole, Points(), Mortal(lambda: False))
    plan = replace(plan, checkpoint=tmp_path / "state")
    with pytest.raises(Killed):
        fit(plan, stopped, Points(), Mortal(dies_at(33)))
    stopped = net()
    assert fit(plan, stopped, Points(), Mortal(lambda: False)).losses == wanted.losses
    assert same(stopped.state_dict(), whole.state_dict())
    for other in (replace(plan, decay=StepDecay(0.4, 1)), replace(plan, factors={"layers.3.": 4.0})):
        with pytest.raises(InputError, match="other settings"):
            fit(other, net(), Points(), Mortal(lambda: False))
