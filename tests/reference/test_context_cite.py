import math

import numpy as np
import pytest
import torch
from sklearn.linear_model import Lasso
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import raison
from raison.core.errors import InputError
from raison.core.problem import Problem
from raison.methods.context_cite import ContextCite
from raison.numerics.perturbation.lasso import lasso, lasso_resampled
from tests.copying import copying_writer
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


def literal(keeps, values, alpha, tokens=1):
    """The public code's surrogate: scikit-learn's scaler and lasso on the outputs per token, back in the units' scale.

    With a stricter tolerance than its default, which stops three digits early.
    """
    scaler, model = StandardScaler(), Lasso(alpha=alpha, tol=1e-12, max_iter=100_000)
    make_pipeline(scaler, model).fit(np.asarray(keeps, dtype=float), np.asarray(values) / tokens)
    return model.coef_ / scaler.scale_ * tokens


@pytest.mark.parametrize("alpha", [0.0001, 0.01, 0.2])
@pytest.mark.parametrize("toy", TOYS)
def test_equals_the_public_surrogate_on_the_same_ablations(toy, alpha, asked):
    problem = make_problem(toy(), TEXTS, removal="mask", of="log_odds")
    scores = ContextCite(alpha=alpha, resamples=0).attribute(problem, generators(len(TEXTS)))
    [(all_keeps, all_values)] = asked
    for text, count in enumerate(problem.encoding.unit_counts):
        assert all_keeps[text].shape == (64, count)
        np.testing.assert_allclose(scores[text, :count], literal(all_keeps[text], all_values[text], alpha), atol=1e-6)
        assert torch.all(scores[text, count:] == 0)
        assert problem.ledger.evaluations[text] <= ContextCite().cost(count).forwards
        assert "intervals" not in problem.ledger.notes[text]


@pytest.mark.parametrize("scale", [0.01, 1.0, 30.0])
def test_a_fitted_penalty_keeps_its_meaning_on_every_scale(scale, asked):
    """The public surrogate with the standard deviation over the root of the ablations as its penalty."""
    bits = (np.arange(2**6)[:, None] >> np.arange(6)) & 1
    values = scale * (bits @ np.array([3.0, 0, 0, -2, 0.4, 0]) + 0.3 * bits[:, 0] * bits[:, 1])
    scores = ContextCite(ablations=16, alpha=None, resamples=0).attribute(game_problem(values), generators(1))[0]
    [([keeps], [found])] = asked
    expected = literal(keeps, found, float(found.std(correction=0)) / 4)
    np.testing.assert_allclose(scores, expected, atol=1e-6 * scale)
    assert 0 < np.count_nonzero(expected) < 6


def test_without_a_difference_a_fitted_penalty_finds_nothing():
    scores = ContextCite(ablations=16, alpha=None).attribute(game_problem(np.ones(2**4)), generators(1))
    assert scores.abs().max() == 0


def test_scores_that_are_all_zero_say_why():
    bits = (np.arange(2**4)[:, None] >> np.arange(4)) & 1
    found = {}
    for size in (0.0, 0.001, 1.0):
        problem = game_problem(size * bits @ np.array([1.0, 0.5, 0, -1]))
        scores = ContextCite(resamples=0).attribute(problem, generators(1))
        found[size] = bool(scores.any()), "caution" in problem.ledger.notes[0]
    assert found == {0.0: (False, False), 0.001: (False, True), 1.0: (True, False)}


def test_ablations_keep_each_unit_with_the_given_probability(asked):
    ContextCite(ablations=20_000, keep=0.3, resamples=0).attribute(game_problem(np.zeros(2**4)), generators(1))
    keeps = asked[0][0][0].double()
    assert keeps.mean(0).tolist() == pytest.approx([0.3] * 4, abs=0.02)
    assert float((keeps[:, 0] * keeps[:, 1]).mean()) == pytest.approx(0.09, abs=0.01)


def test_a_sparse_linear_game_is_found():
    effects = np.zeros(10)
    effects[[2, 7]] = [3.0, -2.0]
    bits = (np.arange(2**10)[:, None] >> np.arange(10)) & 1
    problem = game_problem(bits @ effects + 0.7)
    scores = ContextCite().attribute(problem, generators(1))[0]
    assert scores[2] == pytest.approx(3.0, abs=0.05)
    assert scores[7] == pytest.approx(-2.0, abs=0.05)
    assert scores[[0, 1, 3, 4, 5, 6, 8, 9]].abs().max() < 0.02
    [notes] = problem.ledger.notes
    assert notes["r_squared"] > 0.99
    for unit, (low, high) in enumerate(notes["intervals"]):
        assert low <= scores[unit] + 1e-9
        assert scores[unit] - 1e-9 <= high
    # Without names, each unit is a group.
    assert notes["group_intervals"] == notes["intervals"]


def test_few_ablations_give_no_intervals():
    bits = (np.arange(2**3)[:, None] >> np.arange(3)) & 1
    for ablations, known in ((7, False), (8, True)):
        problem = game_problem(bits @ np.array([1.0, 2.0, 3.0]))
        ContextCite(ablations=ablations).attribute(problem, generators(1))
        assert ("intervals" in problem.ledger.notes[0]) == known


def test_resampled_fits_are_those_of_the_repeated_rows():
    rng = np.random.default_rng(4)
    keeps, values = rng.random((40, 6)) < 0.5, rng.normal(size=40)
    counts = rng.multinomial(40, np.full(40, 1 / 40), size=3)
    found = lasso_resampled(keeps, values, 0.05, counts.astype(float))
    for row, drawn in zip(found, counts, strict=True):
        np.testing.assert_allclose(row, literal(keeps.repeat(drawn, 0), values.repeat(drawn), 0.05), atol=1e-7)
    constant = lasso(np.ones((5, 2), dtype=bool), np.arange(5.0), 0.01)
    assert constant.coefficients.tolist() == [0, 0]
    assert constant.intercept == pytest.approx(2.0)


def test_of_statements_the_outputs_are_per_token(asked):
    sources = {"owl": "owls hunt at night . they eat mice .", "port": "Brandt founded it . it froze ."}
    writer = copying_writer([*sources.values(), "read then answer who"])
    given = {"answer": "Brandt founded it . owls eat", "statements": [(0, 19), (20, 28)], "draws": 0}
    c = raison.cite(
        writer, "who", sources, template="read {sources} then answer {question}", method="context_cite", **given
    )
    assert (c.of, c.top(0), c.top(1)) == ("log_odds", "port", "owl")
    assert [s.tokens for s in c.statements] == [4, 2]
    keeps, values = next(call for call in asked if len(call[0][0]) == 64)
    assert torch.equal(keeps[0], keeps[1])
    for i, tokens in enumerate([4, 2]):
        expected = literal(keeps[i], values[i], 0.01, tokens)
        np.testing.assert_allclose(c.within[i], expected, atol=1e-6)
        np.testing.assert_allclose(c.scores[i], [expected[:2].sum(), expected[2:].sum()], atol=1e-6)
        for (low, high), score in zip(c.intervals[i], c.scores[i], strict=True):
            assert low - 1e-6 <= score <= high + 1e-6
    # The paper's quantity: the log-odds of the probability of all tokens.
    whole = c.statements[0].log_probability
    assert math.log(math.exp(whole) / (1 - math.exp(whole))) > whole
    assert raison.Citations.from_json(c.to_json()) == c


@pytest.mark.parametrize("settings", [{"ablations": 1}, {"keep": 1.0}, {"alpha": -1.0}, {"resamples": -1}])
def test_refuses_what_cannot_be(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        ContextCite(**settings)
