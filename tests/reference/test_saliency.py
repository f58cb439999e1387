import math

import pytest
import torch

from raison.core.method import Cost
from raison.methods.saliency import Saliency
from tests.toys import TEXTS, TOYS, Linear, generators, make_problem


@pytest.mark.parametrize("toy", TOYS)
def test_equals_finite_differences(toy):
    model = toy()
    problem = make_problem(model, TEXTS, of="probability")
    scores = Saliency().attribute(problem, generators(len(TEXTS)))
    for text, length in enumerate(problem.encoding.lengths):
        single = problem.encoding.select([text])
        embeds = model.embed(single)
        for token in range(length):
            squares = 0.0
            for feature in range(2):
                step = torch.zeros_like(embeds)
                step[0, token, feature] = 1e-6
                ends = [model.logits(single, embeds + sign * step).softmax(-1)[0, 1] for sign in (1, -1)]
                squares += (float(ends[0] - ends[1]) / 2e-6) ** 2
            assert scores[text, token] == pytest.approx(math.sqrt(squares), abs=1e-7)


def test_linear_model_has_one_gradient_for_every_token():
    problem = make_problem(Linear(), ["good film", "not a terrible film"])
    scores = Saliency().attribute(problem, generators(2))
    lengths = problem.encoding.lengths
    assert scores[0, : lengths[0]].tolist() == pytest.approx([math.hypot(1, 0.5)] * lengths[0])
    assert torch.all(scores[0, lengths[0] :] == 0)
    assert problem.ledger.evaluations == problem.ledger.gradients == [1, 1]
    assert Saliency().cost(7) == Cost(1, 1)
