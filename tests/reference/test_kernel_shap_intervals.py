"""Intervals of KernelSHAP on games whose Shapley values are known."""

import numpy as np
import pytest

from raison.methods.kernel_shap import KernelShap
from raison.numerics.shapley.intervals import shapley_covariance
from raison.numerics.shapley.regression import plan_coalitions, solve_shapley
from tests.reference.test_kernel_shap import by_subsets, smooth_game
from tests.toys import game_problem, generators

KNOWN = [by_subsets(smooth_game(seed), 12) for seed in range(3)]


@pytest.mark.parametrize(("samples", "least"), [(40, 0.85), (80, 0.88), (176, 0.9), (600, 0.92)])
def test_intervals_hold_the_shapley_values_as_often_as_they_say(samples, least):
    """Known values of three games with interactions of every order, and many draws of coalitions."""
    held = []
    for seed, known in enumerate(KNOWN):
        values = smooth_game(seed)
        for draw in range(20):
            problem = game_problem(values)
            method = KernelShap(samples=samples)
            scores = method.attribute(problem, [np.random.default_rng([seed, draw])])[0].numpy()
            notes = problem.ledger.notes[0]
            if "intervals" not in notes:
                continue
            # Not numpy's, whose names fill what is printed.
            assert {type(bound) for interval in notes["intervals"] for bound in interval} == {float}
            low, high = np.array(notes["intervals"]).T
            assert (low <= scores).all()
            assert (scores <= high).all()
            held += ((low <= known) & (known <= high)).tolist()
            # Units without names are by themselves.
            np.testing.assert_array_equal(notes["group_intervals"], notes["intervals"])
    assert len(held) >= 400
    assert least <= np.mean(held) <= 0.99


def test_intervals_shrink_to_the_exact_score():
    values = smooth_game(5)
    widths = []
    for samples in (60, 200, 1000, 2**12):
        problem = game_problem(values)
        KernelShap(samples=samples).attribute(problem, generators(1))
        low, high = np.array(problem.ledger.notes[0]["intervals"]).T
        widths.append(float((high - low).mean()))
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == 0


def test_an_interval_of_a_sum_is_that_of_the_regression():
    """Over many draws the sum of three scores varies as its stated variance says."""
    values, group = smooth_game(1), [2, 5, 7]
    sums, stated = [], []
    for draw in range(150):
        plan = plan_coalitions(12, 198, np.random.default_rng(draw))
        gains = values[plan.keeps @ (1 << np.arange(12))] - values[0]
        phi, _ = solve_shapley(plan.keeps, plan.weights, gains, values[-1] - values[0])
        sums.append(phi[group].sum())
        stated.append(shapley_covariance(plan, gains, values[-1] - values[0])[np.ix_(group, group)].sum())
    assert np.mean(stated) == pytest.approx(np.var(sums), rel=0.4)


def test_too_few_coalitions_have_no_interval():
    problem = game_problem(smooth_game(0))
    KernelShap(samples=20).attribute(problem, generators(1))
    assert "intervals" not in problem.ledger.notes[0]


@pytest.mark.parametrize("samples", [40, 60])
def test_damping_moves_no_score_out_of_its_interval(samples):
    """On a linear game least squares is exact, and damping is all of the error."""
    effects = np.array([2.0, -3.0, 0.5, -0.25, 1.5, -2.5, 0.0, 0.0, 0.1, -0.4])
    problem = game_problem((np.arange(2**10)[:, None] >> np.arange(10) & 1) @ effects)
    scores = KernelShap(samples=samples).attribute(problem, generators(1))[0].numpy()
    low, high = np.array(problem.ledger.notes[0]["intervals"]).T
    for inside in (effects, scores):
        assert (low - 1e-9 <= inside).all()
        assert (inside <= high + 1e-9).all()


def test_a_text_of_many_units_has_more_coalitions_than_a_float_holds():
    plan = plan_coalitions(1200, 60, np.random.default_rng(0))
    assert np.isfinite(plan.unseen).all()
    assert (plan.unseen > 0).any()
