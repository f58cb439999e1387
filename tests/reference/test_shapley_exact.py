from functools import cache
from itertools import permutations
from math import factorial

import numpy as np
import pytest
import torch

import raison
from raison.core.errors import InputError
from raison.methods.kernel_shap import KernelShap
from raison.methods.shapley_exact import ShapleyExact
from tests.tiny import build
from tests.toys import TEXTS, TOYS, Ignored, Linear, game_problem, generators, make_problem


def remembered(value):
    """The same function, which evaluates every keep once."""
    known = cache(lambda *keep: value(list(keep)))
    return lambda keep: known(*keep)


def by_orders(value, units):
    """Shapley 1953: the average, over all orders, of what each player adds on arrival."""
    value = remembered(value)
    phi = np.zeros(units)
    for order in permutations(range(units)):
        keep = [False] * units
        before = value(keep)
        for unit in order:
            keep[unit] = True
            after = value(keep)
            phi[unit] += (after - before) / factorial(units)
            before = after
    return phi


def number(keep):
    return sum(1 << unit for unit, kept in enumerate(keep) if kept)


@pytest.mark.parametrize("units", range(1, 8))
def test_random_games(units):
    values = np.random.default_rng(units).normal(size=2**units)
    problem = game_problem(values)
    scores = ShapleyExact().attribute(problem, generators(1))[0]
    np.testing.assert_allclose(scores, by_orders(lambda keep: values[number(keep)], units), atol=1e-12)
    assert problem.ledger.evaluations == [2**units] == [ShapleyExact().cost(units).forwards]


@pytest.mark.parametrize("removal", ["mask", "delete"])
@pytest.mark.parametrize("toy", TOYS)
def test_toys(toy, removal):
    problem = make_problem(toy(), TEXTS, removal=removal, of="probability")
    scores = ShapleyExact().attribute(problem, generators(len(TEXTS)))
    for text, count in enumerate(problem.encoding.unit_counts):
        single = problem.encoding.select([text])

        def value(keep, single=single):
            logits = problem.model.masked_logits(single, [torch.tensor([keep])], removal)[0]
            return float(logits.softmax(-1)[0, 1])

        np.testing.assert_allclose(scores[text, :count], by_orders(value, count), atol=1e-10)
        assert torch.all(scores[text, count:] == 0)


def test_closed_forms():
    scores = ShapleyExact().attribute(make_problem(Linear(), ["good bad"]), generators(1))
    assert scores[0].tolist() == pytest.approx([0.95, -1.3])
    dummy = ShapleyExact().attribute(make_problem(Ignored(), ["bad um film"]), generators(1))
    assert dummy[0, 1] == pytest.approx(0, abs=1e-12)
    unanimity = np.zeros(16)
    unanimity[[0b1011, 0b1111]] = 1.0
    third = ShapleyExact().attribute(game_problem(unanimity), generators(1))[0]
    assert third.tolist() == pytest.approx([1 / 3, 1 / 3, 0, 1 / 3])


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_real_models(name):
    model = raison.load(*build(name))
    text = "A boring plot, but good!"
    found = raison.explain(model, text, ShapleyExact(), unit="word")
    encoding = model.encode([text], "word")

    def value(keep):
        logits = model.masked_logits(encoding, [torch.tensor([keep])], found.removal)[0]
        return float(logits.double().softmax(-1)[0, model.classes.index(found.target)])

    np.testing.assert_allclose(found.scores, by_orders(value, len(found.units)), atol=1e-5)


def test_is_what_kernel_shap_becomes():
    values = np.random.default_rng(5).normal(size=2**11)
    scores = ShapleyExact().attribute(game_problem(values), generators(1))
    regression = KernelShap(samples=2**11).attribute(game_problem(values), generators(1))
    torch.testing.assert_close(scores, regression, rtol=0, atol=1e-10)


def test_refuses_long_texts_with_a_way_out():
    problem = make_problem(Linear(), ["good film", "not a terrible film . good"])
    with pytest.raises(InputError, match=r"6 units, more than its limit of 5\. Use kernel_shap"):
        ShapleyExact(limit=5).attribute(problem, generators(2))
    assert problem.ledger.evaluations == [0, 0]


@pytest.mark.parametrize("limit", [0, 25, True])
def test_refuses_what_cannot_be(limit):
    with pytest.raises(InputError, match="limit"):
        ShapleyExact(limit=limit)
