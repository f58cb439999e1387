"""Solvex against all orderings, against a beam that merges nothing, and against the paper's shift of ranks."""

from itertools import permutations
from math import comb

import numpy as np
import pytest
import torch

import raison
from raison.core.errors import InputError, UnknownNameError
from raison.core.method import Cost
from raison.methods.solvex import Solvex
from tests.tiny import TINY
from tests.toys import TEXTS, Linear, Product, game_problem, generators, make_problem

OBJECTIVES = ("comprehensiveness", "sufficiency", "difference")


def number_of(units):
    """Where a set of units stands among a game's values."""
    return sum(1 << unit for unit in units)


def gained(values, order, units, objective):
    """The gains of an ordering's first unit, first two units, ... together, term by term."""
    full, total = values[-1], 0.0
    for size in range(1, len(order) + 1):
        kept = values[number_of(order[:size])]
        removed = values[number_of(set(range(units)) - set(order[:size]))]
        if objective == "comprehensiveness":
            total += full - removed
        elif objective == "sufficiency":
            total += kept - full
        else:
            total += kept - removed
    return total


def worth(values, order, objective):
    """The mean gain of a whole ordering."""
    return gained(values, order, len(order), objective) / len(order)


def shifted(values, order):
    """Ranks from n - 1 down to 0, minus the offset out of -1/2, 1/2, ... under which most signs are right."""
    units = len(order)
    effects = [values[-1] - values[number_of(set(range(units)) - {unit})] for unit in range(units)]
    best = None
    for offset in range(units + 1):
        scores = [units - 1 - order.index(unit) - (offset - 0.5) for unit in range(units)]
        right = sum((score > 0) == (effect > 0) and effect != 0 for score, effect in zip(scores, effects, strict=True))
        if best is None or right > best[0]:
            best = (right, scores)
    return best[1]


def unmerged(values, units, size, objective):
    """Beam search as published: every ordering is an entry of its own, even where the units are the same."""
    beam = [()]
    for _ in range(units):
        longer = [(*order, unit) for order in beam for unit in range(units) if unit not in order]
        beam = sorted(longer, key=lambda order: -gained(values, order, units, objective))[:size]
    return list(beam[0])


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("units", [1, 2, 3, 4, 5])
def test_a_beam_of_all_sets_finds_the_best_of_all_orderings(units, objective):
    for seed in range(6):
        values = np.random.default_rng([seed, units]).normal(size=2**units)
        problem = game_problem(values)
        scores = Solvex(beam=comb(units, units // 2), objective=objective).attribute(problem, generators(1))
        best = max(permutations(range(units)), key=lambda order: worth(values, order, objective))
        assert problem.ledger.notes[0]["worth"] == pytest.approx(worth(values, best, objective), abs=1e-12)
        assert scores[0].tolist() == shifted(values, list(best))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_a_beam_of_one_is_greedy(objective):
    values = np.random.default_rng(8).normal(size=2**7)
    scores = Solvex(beam=1, objective=objective).attribute(game_problem(values), generators(1))
    assert scores[0].tolist() == shifted(values, unmerged(values, 7, 1, objective))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_beside_a_beam_that_merges_nothing(objective):
    merged, plain = [], []
    for seed in range(12):
        values = np.random.default_rng([seed, 9]).normal(size=2**6)
        problem = game_problem(values)
        Solvex(beam=6, objective=objective).attribute(problem, generators(1))
        merged.append(problem.ledger.notes[0]["worth"])
        plain.append(worth(values, unmerged(values, 6, 6, objective), objective))
        exact = Solvex(beam=20, objective=objective)
        exact.attribute(problem, generators(1))
        assert merged[-1] <= problem.ledger.notes[0]["worth"] + 1e-12
    # Of equal size, the beam without repetitions sees more.
    assert np.mean(merged) > np.mean(plain)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("beam", [1, 3, 50])
def test_an_additive_game_is_ordered_by_its_effects(beam, objective):
    effects = np.array([0.4, -1.0, 2.0, 0.1, -0.3])
    values = ((np.arange(2**5)[:, None] >> np.arange(5)) & 1) @ effects
    scores = Solvex(beam=beam, objective=objective).attribute(game_problem(values), generators(1))[0]
    assert scores.tolist() == [1.5, -1.5, 2.5, 0.5, -0.5]


def test_what_the_search_promises_by_its_objective_is_what_its_order_gives():
    # Each objective's own optimum beats the others' orderings under it.
    values = np.random.default_rng(3).normal(size=2**5)
    orders = {}
    for objective in OBJECTIVES:
        scores = Solvex(objective=objective).attribute(game_problem(values), generators(1))[0]
        orders[objective] = scores.argsort(descending=True).tolist()
    for objective in OBJECTIVES:
        own = worth(values, orders[objective], objective)
        assert all(own >= worth(values, order, objective) - 1e-12 for order in orders.values())
    assert len({tuple(order) for order in orders.values()}) > 1


@pytest.mark.parametrize("unit", ["token", "word", "sentence"])
def test_texts_of_a_batch_do_not_mix(unit):
    together = make_problem(Product(), TEXTS, unit, of="probability")
    scores = Solvex(beam=4).attribute(together, generators(len(TEXTS)))
    for text, count in enumerate(together.encoding.unit_counts):
        alone = make_problem(Product(), [TEXTS[text]], unit, of="probability")
        assert torch.equal(Solvex(beam=4).attribute(alone, generators(1))[0], scores[text, :count])
        assert alone.ledger.evaluations == [together.ledger.evaluations[text]]
        assert alone.ledger.notes[0] == together.ledger.notes[text]


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("units", [1, 2, 3, 6, 8])
def test_counts_what_it_asks(units, objective):
    values = np.random.default_rng(units).normal(size=2**units)
    for beam in (1, 2, 5, 50):
        method, problem = Solvex(beam=beam, objective=objective), game_problem(values)
        method.attribute(problem, generators(1))
        asked, bound = problem.ledger.evaluations[0], method.cost(units).forwards
        assert asked == len(problem.counted) == len(problem.evaluations.logits)
        assert asked <= bound <= 2**units
        # A single beginning meets the same number of sets whatever the values, and so does one that misses no set.
        if beam in (1, 50) and units < 8:
            assert asked == bound
    assert problem.ledger.gradients == [0]


def test_the_bound_for_a_long_text():
    bound = Solvex().cost(60)
    assert bound == Cost(forwards=sum(_bounds(60, 50)))
    assert 150_000 < bound.forwards < 180_000
    assert Solvex(objective="sufficiency").cost(60).forwards < 0.51 * bound.forwards


def _bounds(units, beam):
    """Sets of each size that the search can ask for, kept at one depth and removed at another."""
    met, beginnings = [0], 1
    for depth in range(1, units + 1):
        met.append(min(comb(units, depth), beginnings * (units - depth + 1)))
        beginnings = min(beam, met[-1])
    sizes = [(met[size] if size else 0) + (met[units - size] if size < units else 0) for size in range(units + 1)]
    sizes[units] += 1
    sizes[units - 1] += units
    return [min(asked, comb(units, size)) for size, asked in enumerate(sizes)]


@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_finds_the_best_ordering_on_a_transformer(family):
    model = raison.load(*TINY[family]())
    text = "a dull plot , but fine"
    found = raison.explain(model, text, Solvex(beam=20), of="logit", target=1)
    units = len(found.units)
    keeps = torch.tensor([[number >> unit & 1 for unit in range(units)] for number in range(2**units)]).bool()
    encoding = model.encode([text], "word")
    values = model.masked_logits(encoding, [keeps], model.removals[0])[0][:, 1].double().tolist()
    best = max(permutations(range(units)), key=lambda order: worth(values, order, "difference"))
    assert found.notes["worth"] == pytest.approx(worth(values, best, "difference"), abs=1e-5)
    assert list(found.scores) == shifted(values, list(best))


def test_linear_model():
    scores = Solvex().attribute(make_problem(Linear(), ["good um bad fine"]), generators(1))
    # Terms 1.1, 0.35, -1.15 and 0.85 minus that of the mask, 0.15.
    assert scores[0].tolist() == [2.5, 0.5, -0.5, 1.5]


def test_refuses_what_cannot_be():
    for beam in (0, -1, True):
        with pytest.raises(InputError, match="beam of solvex"):
            Solvex(beam=beam)
    with pytest.raises(UnknownNameError, match="objective of solvex.*Did you mean 'comprehensiveness'"):
        Solvex(objective="comprehensivness")
