import numpy as np
import pytest
import torch

import raison
from raison.core.errors import InputError
from raison.methods.shapley_exact import ShapleyExact
from raison.methods.shapley_sampling import ShapleySampling
from raison.numerics.shapley.orders import draw_orders
from tests.tiny import build
from tests.toys import TOYS, Ignored, Linear, game_problem, generators, make_problem

LONG = "good film not bad fine um film . good terrible film"


def literal(value, orders):
    """ApproShapley of Castro et al. 2009, order by order."""
    totals = np.zeros(len(orders[0]))
    for order in orders:
        keep = [False] * len(order)
        before = value(keep)
        for unit in order:
            keep[unit] = True
            after = value(keep)
            totals[unit] += after - before
            before = after
    return totals / len(orders)


def table(values):
    return lambda keep: values[sum(1 << unit for unit, kept in enumerate(keep) if kept)]


@pytest.mark.parametrize("samples", [9, 16, 40, 100])
def test_random_games(samples):
    values = np.random.default_rng(samples).normal(size=2**8)
    problem = game_problem(values)
    scores = ShapleySampling(samples=samples).attribute(problem, generators(1))[0]
    orders = draw_orders(8, samples, generators(1)[0])
    np.testing.assert_allclose(scores, literal(table(values), orders), atol=1e-12)
    passed = {tuple(sorted(order[:step])) for order in orders.tolist() for step in range(9)}
    assert problem.ledger.evaluations == [len(passed)]
    assert len(passed) <= samples
    assert problem.ledger.notes[0]["orders"] == len(orders)


def test_orders_come_in_reversed_pairs_and_fill_the_budget():
    orders = draw_orders(10, 200, np.random.default_rng(0))
    assert np.array_equal(orders[::2], orders[1::2, ::-1])
    assert np.array_equal(np.sort(orders, axis=1), np.tile(np.arange(10), (len(orders), 1)))
    # Without repeats eleven pairs of 18 and the two ends fit.
    assert len(orders) >= 22
    assert len(draw_orders(10, 11, np.random.default_rng(0))) == 1
    assert len(draw_orders(10, 10, np.random.default_rng(0))) == 0
    # All six orders of three players pass eight keeps: repeats cost nothing, and the drawing ends.
    assert len(draw_orders(3, 8, np.random.default_rng(0))) == 16


@pytest.mark.parametrize("toy", TOYS)
def test_exact_where_all_keeps_are_affordable(toy):
    texts = ("good film", "not a terrible film . good", "bad")
    problem = make_problem(toy(), texts, of="probability")
    scores = ShapleySampling().attribute(problem, generators(3))
    exact = ShapleyExact().attribute(make_problem(toy(), texts, of="probability"), generators(3))
    torch.testing.assert_close(scores, exact, rtol=0, atol=1e-12)
    assert problem.ledger.evaluations == [2**n for n in problem.encoding.unit_counts]
    assert [notes["orders"] for notes in problem.ledger.notes] == ["all"] * 3


def test_exact_on_an_additive_game_from_one_order():
    effects = np.random.default_rng(2).normal(size=9)
    values = (np.arange(2**9)[:, None] >> np.arange(9) & 1) @ effects
    scores = ShapleySampling(samples=10).attribute(game_problem(values), generators(1))[0]
    np.testing.assert_allclose(scores, effects, atol=1e-12)


def test_unbiased_and_its_standard_error_is_honest():
    values = np.random.default_rng(11).normal(size=2**9)
    exact = ShapleyExact().attribute(game_problem(values), generators(1))[0].numpy()
    found, stated = [], []
    for seed in range(300):
        problem = game_problem(values)
        found.append(ShapleySampling(samples=120).attribute(problem, generators(1, seed))[0].numpy())
        stated.append(problem.ledger.notes[0]["standard_error"])
    spread = np.std(found, axis=0)
    assert np.all(np.abs(np.mean(found, axis=0) - exact) < 4 * spread / np.sqrt(300))
    np.testing.assert_allclose(np.sqrt(np.square(stated).mean(axis=0)), spread, rtol=0.15)


def test_tolerance_stops_on_the_same_orders():
    values = np.tanh(np.random.default_rng(3).normal(size=2**10) * 0.3)
    whole, stopped = game_problem(values), game_problem(values)
    everything = ShapleySampling(samples=600).attribute(whole, generators(1))
    early = ShapleySampling(samples=600, tolerance=0.07).attribute(stopped, generators(1))
    notes = stopped.ledger.notes[0]
    assert 8 <= notes["orders"] < whole.ledger.notes[0]["orders"]
    assert notes["orders"] % 8 == 0
    assert max(notes["standard_error"]) <= 0.07
    assert stopped.ledger.evaluations[0] < whole.ledger.evaluations[0] <= 600
    orders = draw_orders(10, 600, generators(1)[0])[: notes["orders"]]
    np.testing.assert_allclose(early[0], literal(table(values), orders), atol=1e-12)
    never = ShapleySampling(samples=600, tolerance=1e-9).attribute(game_problem(values), generators(1))
    torch.testing.assert_close(never, everything, rtol=0, atol=1e-12)


def test_complete_and_dummy_at_every_budget():
    for samples in (12, 13, 30, 150):
        problem = make_problem(Ignored(), [LONG], of="probability")
        scores = ShapleySampling(samples=samples).attribute(problem, generators(1))[0]
        ends = problem.values([torch.tensor([[True] * 11, [False] * 11])])[0]
        assert scores.sum() == pytest.approx(float(ends[0] - ends[1]), abs=1e-12)
        assert scores[5] == pytest.approx(0, abs=1e-12)


def test_batch_does_not_matter():
    for method in (ShapleySampling(samples=40), ShapleySampling(samples=90, tolerance=0.02)):
        together = method.attribute(make_problem(Linear(), [LONG, "bad"], of="probability"), generators(2))
        alone = method.attribute(make_problem(Linear(), [LONG], of="probability"), generators(1))
        assert torch.equal(together[0], alone[0])


def test_real_model():
    model = raison.load(*build("bert"))
    text = "The old sailor told a modest story about the sea."
    found = raison.explain(model, text, ShapleySampling(samples=400), unit="word", of="logit")
    exact = raison.explain(model, text, ShapleyExact(), unit="word", of="logit")
    assert found.evaluations <= 400
    errors = np.abs(np.array(found.scores) - exact.scores)
    assert np.all(errors < 6 * np.array(found.notes["standard_error"]) + 1e-5)


def test_refuses_what_cannot_be():
    for samples in (1, 0, -5, True):
        with pytest.raises(InputError, match="samples"):
            ShapleySampling(samples=samples)
    for tolerance in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(InputError, match="tolerance"):
            ShapleySampling(tolerance=tolerance)
    with pytest.raises(InputError, match="11 units: a single order needs 12 evaluations. Give at least 22"):
        ShapleySampling(samples=11).attribute(make_problem(Linear(), [LONG]), generators(1))
