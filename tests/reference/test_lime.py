import math

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

from raison.core.errors import InputError
from raison.core.problem import Problem
from raison.methods.lime import Lime
from raison.numerics.perturbation.surrogate import weighted_ridge
from tests.toys import TEXTS, TOYS, game_problem, generators, make_problem


@pytest.fixture
def asked(monkeypatch):
    """The keeps and values of every call of Problem.values."""
    calls = []
    values = Problem.values

    def recorded(problem, keeps):
        found = values(problem, keeps)
        calls.append((keeps, found))
        return found

    monkeypatch.setattr(Problem, "values", recorded)
    return calls


def literal(keeps, values, kernel_width, alpha):
    """Ribeiro et al. 2016, section 3.3, one sample after the other; the regression by scikit-learn."""
    weights = []
    for keep in keeps.tolist():
        length = math.sqrt(sum(keep))
        cosine = sum(keep) / (length * math.sqrt(len(keep))) if length else 0.0
        weights.append(math.sqrt(math.exp(-((100 * (1 - cosine)) ** 2) / kernel_width**2)))
    ridge = Ridge(alpha=alpha, fit_intercept=True).fit(keeps.numpy().astype(float), values, sample_weight=weights)
    return ridge.coef_, ridge.score(keeps.numpy().astype(float), values, sample_weight=weights)


@pytest.mark.parametrize(("kernel_width", "alpha"), [(25.0, 1.0), (10.0, 0.01)])
@pytest.mark.parametrize("removal", ["mask", "delete"])
@pytest.mark.parametrize("toy", TOYS)
def test_equals_scikit_learn_on_the_same_samples(toy, removal, kernel_width, alpha, asked):
    problem = make_problem(toy(), TEXTS, removal=removal, of="probability")
    scores = Lime(kernel_width=kernel_width, alpha=alpha).attribute(problem, generators(len(TEXTS)))
    [(all_keeps, all_values)] = asked
    for text, count in enumerate(problem.encoding.unit_counts):
        keeps, values = all_keeps[text], all_values[text].numpy()
        assert len(keeps) == 4 * count + 128
        expected, fit = literal(keeps, values, kernel_width, alpha)
        np.testing.assert_allclose(scores[text, :count], expected, atol=1e-9)
        assert problem.ledger.notes[text]["r_squared"] == pytest.approx(fit, abs=1e-8)
        assert torch.all(scores[text, count:] == 0)
        assert problem.ledger.evaluations[text] <= Lime().cost(count).forwards


def test_samples_follow_the_papers_law(asked):
    problem = make_problem(TOYS[0](), ["good film not bad"])
    Lime(samples=40_001).attribute(problem, generators(1))
    keeps = asked[0][0][0]
    assert keeps[0].all()
    removed = (~keeps[1:]).sum(1).bincount(minlength=5) / 40_000
    assert removed.tolist() == pytest.approx([0, 0.25, 0.25, 0.25, 0.25], abs=0.01)
    # Each unit is removed with probability E[k] / n = (n + 1) / (2 n).
    assert (~keeps[1:]).double().mean(0).tolist() == pytest.approx([5 / 8] * 4, abs=0.01)
    assert problem.ledger.evaluations[0] == 16


def test_random_game_without_penalty_reproduces_a_linear_game():
    effects = np.random.default_rng(1).normal(size=8)
    bits = (np.arange(2**8)[:, None] >> np.arange(8)) & 1
    problem = game_problem(bits @ effects + 0.7)
    scores = Lime(samples=200, alpha=0.0).attribute(problem, generators(1))
    np.testing.assert_allclose(scores[0], effects, atol=1e-9)
    assert problem.ledger.notes[0]["r_squared"] == pytest.approx(1)


def test_surrogate_edges():
    keeps = np.array([[True, True], [True, False], [False, True]])
    constant = weighted_ridge(keeps, np.full(3, 2.5), np.ones(3), 1.0)
    assert constant.coefficients.tolist() == pytest.approx([0, 0], abs=1e-15)
    assert constant.intercept == pytest.approx(2.5)
    assert constant.r_squared == 1.0
    # Two units that are always removed together share the effect.
    tied = weighted_ridge(np.array([[True, True], [False, False]]), np.array([1.0, 0.0]), np.ones(2), 0.0)
    assert tied.coefficients.tolist() == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize(
    "settings", [{"samples": 1}, {"kernel_width": 0.0}, {"kernel_width": math.nan}, {"alpha": -1.0}]
)
def test_refuses_what_cannot_be(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        Lime(**settings)
