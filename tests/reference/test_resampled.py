"""Resampled baselines against a loop that makes the same draws and integrates one path at a time."""

import math

import numpy as np
import pytest
import torch

import raison
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.errors import InputError, UnknownNameError
from raison.core.method import Cost
from raison.integration import repeated_texts
from raison.methods.integrated_gradients import IntegratedGradients
from raison.methods.resampled import Resampled
from raison.methods.sequential_integrated_gradients import SequentialIntegratedGradients
from tests.tiny import TINY
from tests.toys import TEXTS, Ignored, Linear, Max, Product, generators, in_place, make_problem, removed_embeddings

IG = "integrated_gradients(steps=3)"
SIG = "sequential_integrated_gradients(steps=3)"


def literal_start(rng, ends, mask, scored, settings):
    """Section 3.2.1 of Barkan et al. 2024 with the mask token as the mean; t first, then noise, token by token."""
    timesteps, fixed = settings
    t = int(rng.integers(1, timesteps + 1)) if fixed is None else fixed
    share = 1.0
    for j in range(t):
        share *= 1 - (1e-4 + (0.02 - 1e-4) * j / (timesteps - 1))
    start = ends.clone()
    for token in range(len(ends)):
        for feature in range(ends.shape[1] if scored[token] else 0):
            start[token, feature] = math.sqrt(share) * mask[feature] + math.sqrt(1 - share) * rng.standard_normal()
    return start


def literal_ig(model, ends, start, unit_ids, moving):
    """Scores of the tokens whose unit is in `moving`, which move from `start`; the others stay."""
    nodes, weights = np.polynomial.legendre.leggauss(3)
    scores = torch.zeros(len(ends), dtype=torch.float64)
    moves = torch.tensor([int(unit) in moving for unit in unit_ids])[:, None]
    for node, weight in zip(nodes, weights, strict=True):
        point = torch.where(moves, start + (node + 1) / 2 * (ends - start), ends).requires_grad_()
        value = (2 * model.gain(point[None], torch.ones(1, len(ends), dtype=torch.bool))).sigmoid()[0]
        (gradient,) = torch.autograd.grad(value, point)
        scores += weight / 2 * (moves * (ends - start) * gradient).sum(-1)
    return scores


@pytest.mark.parametrize("settings", [(500, None), (20, None), (20, 7)])
@pytest.mark.parametrize("inner", [IG, SIG])
@pytest.mark.parametrize("toy", [Linear, Product, Max, Ignored])
def test_equals_a_loop_that_makes_the_same_draws(toy, inner, settings):
    model = toy()
    problem = make_problem(model, TEXTS, of="probability")
    method = Resampled(inner, baselines=3, timesteps=settings[0], t=settings[1])
    maps = method.candidates(problem, generators(len(TEXTS)))
    assert maps.shape == (method.maps, *problem.encoding.input_ids.shape)
    for text, (rng, length) in enumerate(zip(generators(len(TEXTS)), problem.encoding.lengths, strict=True)):
        ends, unit_ids = (
            model.ask(WordEmbeddings).embed(problem.encoding)[text, :length],
            problem.encoding.unit_ids[text, :length],
        )
        units = range(problem.encoding.unit_counts[text])
        for found in maps[:, text]:
            start = literal_start(rng, ends, (0.0, 0.3), unit_ids >= 0, settings)
            paths = [set(units)] if inner == IG else [{unit} for unit in units]
            expected = sum(literal_ig(model, ends, start, unit_ids, moving) for moving in paths)
            torch.testing.assert_close(found[:length], expected, rtol=0, atol=1e-12)
            assert torch.all(found[length:] == 0)
            assert torch.all(found[:length][unit_ids < 0] == 0)


@pytest.mark.parametrize("family", ["bert", "llama"])
def test_maps_are_the_methods_from_the_drawn_starts_on_a_transformer(family):
    model = raison.load(*TINY[family]())
    encoding = model.encode(["a dull plot , but fine", "dull"], "word")
    target = make_problem(Linear(), ["a", "b"]).target
    problem = repeated_texts.Problem(
        model, encoding, target, in_place(model), repeated_texts.Ledger.empty(2), repeated_texts.Evaluations()
    )
    maps = Resampled(IG, baselines=2, t=100, timesteps=200).candidates(problem, generators(2))
    ends, masked = (
        model.ask(WordEmbeddings).embed(encoding),
        removed_embeddings(model, encoding, in_place(model)),
    )
    for text, (rng, length) in enumerate(zip(generators(2), encoding.lengths, strict=True)):
        own = encoding.scored[text, :length]
        single = repeated_texts.repeated(problem, [text])
        for found in maps[:, text]:
            mask = masked[text, :length][own][0].tolist()
            start = literal_start(rng, ends[text, :length], mask, own, (200, 100))
            expected = IntegratedGradients(steps=3).attribute_from(single, start[None])[0]
            torch.testing.assert_close(found[:length], expected, rtol=2e-4, atol=1e-5)


def test_without_a_choice_the_mean():
    maps = Resampled(IG, baselines=5).candidates(make_problem(Product(), TEXTS), generators(len(TEXTS)))
    mean = Resampled(IG, baselines=5).attribute(make_problem(Product(), TEXTS), generators(len(TEXTS)))
    torch.testing.assert_close(mean, sum(maps) / 5, rtol=0, atol=1e-14)
    torch.testing.assert_close(Resampled(IG, baselines=5).unselected(maps), mean)
    assert all((maps[0] - other).abs().max() > 0.01 for other in maps[1:])


@pytest.mark.parametrize("t", [None, 40])
def test_more_baselines_keep_the_first_ones(t):
    few, many = (
        Resampled(SIG, baselines=count, t=t).candidates(make_problem(Product(), TEXTS), generators(len(TEXTS)))
        for count in (2, 6)
    )
    assert torch.equal(few, many[:2])


def test_draws_depend_on_the_text_alone():
    together = Resampled(IG, baselines=3).candidates(make_problem(Product(), TEXTS), generators(len(TEXTS)))
    for text, (words, rng) in enumerate(zip(TEXTS, generators(len(TEXTS)), strict=True)):
        problem = make_problem(Product(), [words])
        alone = Resampled(IG, baselines=3).candidates(problem, [rng])[:, 0]
        torch.testing.assert_close(together[:, text, : alone.shape[1]], alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("numbers", [1, 50, 200])
@pytest.mark.parametrize("inner", [IG, SIG])
def test_portions_change_nothing(monkeypatch, inner, numbers):
    whole = make_problem(Product(), TEXTS, of="probability")
    expected = Resampled(inner, baselines=4).candidates(whole, generators(len(TEXTS)))
    monkeypatch.setattr(repeated_texts, "NUMBERS", numbers)
    parted = make_problem(Product(), TEXTS, of="probability")
    maps = Resampled(inner, baselines=4).candidates(parted, generators(len(TEXTS)))
    torch.testing.assert_close(maps, expected, rtol=0, atol=1e-13)
    assert parted.ledger == whole.ledger


@pytest.mark.parametrize("inner", [IntegratedGradients, SequentialIntegratedGradients])
@pytest.mark.parametrize("name", ["pad", "zero"])
def test_the_methods_own_baseline_is_the_mean(inner, name):
    # Almost no noise: the maps are nearly those of the method itself.
    call = f"{raison.core.registry.name_of(inner)}(steps=4, baseline={name!r})"
    problems = [make_problem(Linear(), TEXTS) for _ in range(2)]
    maps = Resampled(call, baselines=2, timesteps=10**6, t=1).candidates(problems[0], generators(len(TEXTS)))
    own = inner(steps=4, baseline=name).attribute(problems[1], generators(len(TEXTS)))
    torch.testing.assert_close(maps[0], own, rtol=0, atol=0.05)
    assert [notes["baseline"] for notes in problems[0].ledger.notes] == [name] * len(TEXTS)


def test_schedules_differ():
    linear, cosine = (
        Resampled(IG, baselines=2, t=100, schedule=schedule).candidates(
            make_problem(Product(), TEXTS[1:2]), generators(1)
        )
        for schedule in ("linear", "cosine")
    )
    assert (linear - cosine).abs().max() > 0.01


def test_counts_its_passes():
    for inner, passes in ((IG, [3, 3, 3, 3]), (SIG, [6, 18, 15, 3])):
        problem = make_problem(Linear(), TEXTS)
        assert problem.encoding.unit_counts == (2, 6, 5, 1)
        Resampled(inner, baselines=4).attribute(problem, generators(len(TEXTS)))
        assert problem.ledger.evaluations == problem.ledger.gradients == [4 * count for count in passes]
    assert Resampled(IG, baselines=4).cost(5) == Cost(20, 12)
    assert Resampled(SIG, baselines=4).cost(5) == Cost(60, 60)


def test_refuses_what_cannot_be():
    able = "integrated_gradients or sequential_integrated_gradients"
    with pytest.raises(InputError, match=f"cannot be 'kernel_shap'.*Use {able}"):
        Resampled("kernel_shap(samples=12)")
    with pytest.raises(UnknownNameError, match="Did you mean 'integrated_gradients'.*Known: integrated_gradients, seq"):
        Resampled("integrated_gradient")
    with pytest.raises(UnknownNameError, match="setting of integrated_gradients 'stepz'"):
        Resampled("integrated_gradients(stepz=3)")
    with pytest.raises(InputError, match="steps of integrated_gradients"):
        Resampled("integrated_gradients(steps=0)")
    with pytest.raises(InputError, match="cannot read the method 'integrated_gradients.steps'"):
        Resampled("integrated_gradients(steps")
    with pytest.raises(InputError, match="baselines of resampled"):
        Resampled(baselines=0)
