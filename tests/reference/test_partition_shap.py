from functools import cache

import numpy as np
import pytest
import torch

import raison
from raison.core.errors import InputError
from raison.methods.partition_shap import PartitionShap
from raison.methods.shapley_exact import ShapleyExact
from raison.numerics.shapley.tree import tree_evaluations
from tests.tiny import build
from tests.toys import TEXTS, TOYS, Ignored, Linear, game_problem, generators, make_problem

LONG = "good film not bad fine um film . good terrible film"


def remembered(value):
    """The same function, which evaluates every keep once."""
    known = cache(lambda *keep: value(list(keep)))
    return lambda keep: known(*keep)


def owen_by_orders(value, units):
    """Owen 1977 for nested unions: the average over all orders in which no cluster of the tree is torn apart."""
    value = remembered(value)
    phi, orders = np.zeros(units), list(consistent(0, units))
    for order in orders:
        keep = [False] * units
        before = value(keep)
        for unit in order:
            keep[unit] = True
            after = value(keep)
            phi[unit] += (after - before) / len(orders)
            before = after
    return phi


def consistent(first, last):
    if last - first == 1:
        yield (first,)
        return
    middle = (first + last) // 2
    for left in consistent(first, middle):
        for right in consistent(middle, last):
            yield left + right
            yield right + left


def table(values, asked=None):
    def value(keep):
        if asked is not None:
            asked.add(tuple(keep))
        return values[sum(1 << unit for unit, kept in enumerate(keep) if kept)]

    return value


@pytest.mark.parametrize("units", range(1, 10))
def test_random_games(units):
    values = np.random.default_rng(units).normal(size=2**units)
    problem, asked = game_problem(values), set()
    scores = PartitionShap(samples=10_000).attribute(problem, generators(1))[0]
    np.testing.assert_allclose(scores, owen_by_orders(table(values, asked), units), atol=1e-12)
    assert problem.ledger.evaluations == [len(asked)] == [tree_evaluations(units)]
    assert problem.ledger.notes == [{"solution": "exact"}]


@pytest.mark.parametrize("toy", TOYS)
def test_toys(toy):
    problem = make_problem(toy(), TEXTS, of="probability")
    scores = PartitionShap().attribute(problem, generators(len(TEXTS)))
    for text, count in enumerate(problem.encoding.unit_counts):
        single = problem.encoding.select([text])

        def value(keep, single=single):
            logits = problem.model.masked_logits(single, [torch.tensor([keep])], "mask")[0]
            return float(logits.softmax(-1)[0, 1])

        np.testing.assert_allclose(scores[text, :count], owen_by_orders(value, count), atol=1e-10)
        assert torch.all(scores[text, count:] == 0)


def refined(value, units, splits):
    """The largest |credit| first, five splits or an eighth of all at a time, without a heap: lists are searched."""
    empty, whole = [False] * units, [True] * units
    waiting, phi = [(0, units, empty, value(empty), value(whole), 1.0)], np.zeros(units)
    at_a_time = max(5, splits // 8)
    while splits and any(last - first > 1 for first, last, *_ in waiting):
        splittable = [one for one in waiting if one[1] - one[0] > 1]
        chosen = sorted(splittable, key=lambda one: -abs(one[5] * (one[4] - one[3])))[: min(at_a_time, splits)]
        splits -= len(chosen)
        waiting = [one for one in waiting if not any(one is other for other in chosen)]
        for first, last, context, low, high, weight in chosen:
            middle = (first + last) // 2
            left = [kept or first <= unit < middle for unit, kept in enumerate(context)]
            right = [kept or middle <= unit < last for unit, kept in enumerate(context)]
            waiting += [
                (first, middle, context, low, value(left), weight / 2),
                (middle, last, context, low, value(right), weight / 2),
                (first, middle, right, value(right), high, weight / 2),
                (middle, last, left, value(left), high, weight / 2),
            ]
    for first, last, _, low, high, weight in waiting:
        phi[first:last] += weight * (high - low) / (last - first)
    return phi


@pytest.mark.parametrize("samples", [2, 3, 4, 11, 12, 31, 60, 107])
def test_refinement_under_a_budget(samples):
    values = np.random.default_rng(samples).normal(size=2**12)
    problem, method = game_problem(values), PartitionShap(samples=samples)
    scores = method.attribute(problem, generators(1))[0]
    np.testing.assert_allclose(scores, refined(table(values), 12, (samples - 2) // 2), atol=1e-12)
    assert scores.sum() == pytest.approx(values[-1] - values[0], abs=1e-12)
    assert problem.ledger.evaluations == [method.cost(12).forwards] == [samples // 2 * 2]
    assert problem.ledger.notes[0]["solution"].endswith(" shared")


def test_evaluations_of_a_tree():
    # Powers of two have a closed form: at depth d, 2^d clusters in 2^d contexts with two each.
    for depth in range(6):
        assert tree_evaluations(2**depth) == 2 + 2 * (4**depth - 1) // 3
    assert tree_evaluations(12) == 108
    assert PartitionShap().cost(60).forwards == 4 * 60 + 128


def test_closed_forms():
    scores = PartitionShap().attribute(make_problem(Linear(), ["good bad"]), generators(1))
    assert scores[0].tolist() == pytest.approx([0.95, -1.3])
    dummy = PartitionShap().attribute(make_problem(Ignored(), ["bad um film"]), generators(1))
    assert dummy[0, 1] == pytest.approx(0, abs=1e-12)
    # Units 1 and 3 of four need each other: alone in their halves, they share as Shapley has it; 2 and 3 do too.
    for pair in (0b1010, 0b1100):
        values = np.array([float(keep & pair == pair) for keep in range(16)])
        halves = PartitionShap().attribute(game_problem(values), generators(1))[0]
        assert halves.tolist() == pytest.approx([0.5 * (pair >> unit & 1) for unit in range(4)])
    # Majority of the units 0, 2 and 3: a half of the text speaks for both of its members.
    votes = np.array([float((keep & 0b1101).bit_count() >= 2) for keep in range(16)])
    owen = PartitionShap().attribute(game_problem(votes), generators(1))[0]
    shapley = ShapleyExact().attribute(game_problem(votes), generators(1))[0]
    assert owen.tolist() == pytest.approx([0, 0, 0.5, 0.5])
    assert shapley.tolist() == pytest.approx([1 / 3, 0, 1 / 3, 1 / 3])


def test_batch_does_not_matter():
    method = PartitionShap(samples=40)
    together = method.attribute(make_problem(Linear(), [LONG, "bad"], of="probability"), generators(2))
    alone = method.attribute(make_problem(Linear(), [LONG], of="probability"), generators(1))
    assert torch.equal(together[0], alone[0])


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_real_models(name):
    model = raison.load(*build(name))
    text = "A boring plot, but good!"
    found = raison.explain(model, text, PartitionShap(), unit="word")
    encoding = model.encode([text], "word")

    def value(keep):
        logits = model.masked_logits(encoding, [torch.tensor([keep])], found.removal)[0]
        return float(logits.double().softmax(-1)[0, model.classes.index(found.target)])

    np.testing.assert_allclose(found.scores, owen_by_orders(value, len(found.units)), atol=1e-5)


@pytest.mark.parametrize("samples", [1, 0, -5, True])
def test_refuses_what_cannot_be(samples):
    with pytest.raises(InputError, match="samples"):
        PartitionShap(samples=samples)
