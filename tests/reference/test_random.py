import numpy as np
import torch

from raison.methods.random import Random
from tests.toys import TEXTS, Linear, generators, make_problem


def test_scores_are_each_texts_own_normal_draws():
    problem = make_problem(Linear(), TEXTS)
    scores = Random().attribute(problem, generators(len(TEXTS), seed=3))
    for text, count in enumerate(problem.encoding.unit_counts):
        expected = np.random.default_rng([3, text]).standard_normal(count)
        np.testing.assert_array_equal(scores[text, :count], expected)
        assert torch.all(scores[text, count:] == 0)
    assert problem.ledger.evaluations == [0] * len(TEXTS)


def test_moments():
    problem = make_problem(Linear(), ["film " * 2_000])
    scores = Random().attribute(problem, generators(1))
    assert abs(scores.mean()) < 0.07
    assert abs(scores.std() - 1) < 0.05
