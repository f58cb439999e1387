import numpy as np
import pytest
import torch

from raison.core.method import Cost
from raison.methods.occlusion import Occlusion
from tests.toys import TEXTS, TOYS, Copy, Ignored, Linear, game_problem, generators, make_problem


@pytest.mark.parametrize("removal", ["mask", "delete"])
@pytest.mark.parametrize("toy", TOYS)
def test_equals_leaving_out_one_unit_at_a_time(toy, removal):
    problem = make_problem(toy(), TEXTS, removal=removal, of="probability")
    scores = Occlusion().attribute(problem, generators(len(TEXTS)))
    fresh = make_problem(toy(), TEXTS, removal=removal, of="probability")
    for text, count in enumerate(problem.encoding.unit_counts):
        single = fresh.encoding.select([text])

        def value(keep, single=single):
            logits = fresh.model.masked_logits(single, [torch.tensor([keep])], removal)[0]
            return float(logits.softmax(-1)[0, 1])

        for unit in range(count):
            others = [i != unit for i in range(count)]
            assert scores[text, unit] == pytest.approx(value([True] * count) - value(others), abs=1e-12)
        assert torch.all(scores[text, count:] == 0)
        assert problem.ledger.evaluations[text] == count + 1 == Occlusion().cost(count).forwards


def test_random_game():
    values = np.random.default_rng(0).normal(size=2**6)
    scores = Occlusion().attribute(game_problem(values), generators(1))[0]
    for unit in range(6):
        assert scores[unit] == pytest.approx(values[-1] - values[(2**6 - 1) ^ (1 << unit)])


def test_closed_forms():
    # A linear model loses the unit's term minus that of the mask, 0.15; a deleted unit's term is lost whole.
    for removal, expected in (("mask", [0.95, -1.3]), ("delete", [1.1, -1.15])):
        scores = Occlusion().attribute(make_problem(Linear(), ["good bad"], removal=removal), generators(1))
        assert scores[0].tolist() == pytest.approx(expected)
        dummy = Occlusion().attribute(make_problem(Ignored(), ["bad um film"], removal=removal), generators(1))
        assert dummy[0, 1] == 0
    copied = Occlusion().attribute(make_problem(Copy(), ["good film bad"]), generators(1))
    assert copied[0].tolist() == pytest.approx([0, 0, -1.3])
    assert Occlusion().cost(3) == Cost(4)
