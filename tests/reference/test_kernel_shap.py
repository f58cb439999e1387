from collections import Counter
from itertools import combinations, permutations
from math import comb, factorial

import numpy as np
import pytest
import torch

import raison
from raison.core.errors import InputError
from raison.methods.kernel_shap import KernelShap
from raison.numerics.shapley.gaussian_process import fit_prior, lone_values, process_shapley, smooth_values
from raison.numerics.shapley.regression import level_mass, plan_coalitions, solve_shapley
from tests.toys import TEXTS, TOYS, Ignored, Linear, game_problem, generators, make_problem


def by_permutations(value, units):
    """Shapley 1953: the average, over all orders, of what each player adds on arrival."""
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


def by_subsets(values, units):
    """The same as a sum over subsets, for games too large for permutations."""
    phi = np.zeros(units)
    for subset in range(2**units):
        size = subset.bit_count()
        for unit in range(units):
            if not subset >> unit & 1:
                weight = factorial(size) * factorial(units - size - 1) / factorial(units)
                phi[unit] += weight * (values[subset | 1 << unit] - values[subset])
    return phi


def number(keep):
    return sum(1 << unit for unit, kept in enumerate(keep) if kept)


def smooth_game(seed, units=12):
    """A random network's output over all keeps: interactions of every order, as a model has."""
    rng = np.random.default_rng(seed)
    bits = (np.arange(2**units)[:, None] >> np.arange(units)) & 1
    hidden = np.tanh(bits @ rng.normal(size=(units, 16)) * 0.6 + rng.normal(size=16))
    return 1 / (1 + np.exp(-hidden @ rng.normal(size=16)))


@pytest.mark.parametrize("units", range(1, 8))
def test_exact_on_random_games(units):
    values = np.random.default_rng(units).normal(size=2**units)
    problem = game_problem(values)
    scores = KernelShap(samples=2**units).attribute(problem, generators(1))[0]
    np.testing.assert_allclose(scores, by_permutations(lambda keep: values[number(keep)], units), atol=1e-10)
    assert problem.ledger.evaluations == [2**units]
    assert problem.ledger.notes[0]["solution"] == "exact"


@pytest.mark.parametrize("units", [9, 12])
def test_exact_on_larger_games(units):
    values = np.random.default_rng(units).normal(size=2**units)
    scores = KernelShap(samples=2**units).attribute(game_problem(values), generators(1))[0]
    np.testing.assert_allclose(scores, by_subsets(values, units), atol=1e-10)


@pytest.mark.parametrize("removal", ["mask", "delete"])
@pytest.mark.parametrize("toy", TOYS)
def test_exact_on_toys(toy, removal):
    problem = make_problem(toy(), TEXTS, removal=removal, of="probability")
    scores = KernelShap().attribute(problem, generators(len(TEXTS)))
    for text, count in enumerate(problem.encoding.unit_counts):
        single = problem.encoding.select([text])
        cache = {}

        def value(keep, single=single, cache=cache):
            if tuple(keep) not in cache:
                logits = problem.model.masked_logits(single, [torch.tensor([keep])], removal)[0]
                cache[tuple(keep)] = float(logits.softmax(-1)[0, 1])
            return cache[tuple(keep)]

        np.testing.assert_allclose(scores[text, :count], by_permutations(value, count), atol=1e-10)
        assert torch.all(scores[text, count:] == 0)
        assert problem.ledger.evaluations[text] == 2**count == KernelShap().cost(count).forwards


def test_closed_forms():
    scores = KernelShap().attribute(make_problem(Linear(), ["good bad"]), generators(1))
    assert scores[0].tolist() == pytest.approx([0.95, -1.3])
    dummy = KernelShap().attribute(make_problem(Ignored(), ["bad um film"]), generators(1))
    assert dummy[0, 1] == pytest.approx(0, abs=1e-12)


def test_error_falls_with_the_budget():
    budgets = (48, 192, 768, 3072, 4096)
    errors = np.zeros((12, len(budgets)))
    for seed in range(12):
        values = smooth_game(seed)
        truth = by_subsets(values, 12)
        for column, samples in enumerate(budgets):
            scores = KernelShap(samples=samples).attribute(game_problem(values), generators(1, seed))[0].numpy()
            assert scores.sum() == pytest.approx(values[-1] - values[0], abs=1e-12)
            errors[seed, column] = np.linalg.norm(scores - truth) / np.linalg.norm(truth)
    means = errors.mean(axis=0)
    assert np.all(means[1:] < 0.6 * means[:-1])
    assert means[1] < 0.15
    assert means[-1] < 1e-10


@pytest.mark.parametrize("units", [1, 2, 3, 4, 7, 12, 60])
@pytest.mark.parametrize("budget", [0, 1, 2, 3, 7, 20, 61, 130, 500])
def test_plan_respects_the_budget_and_repeats_nothing(units, budget):
    plan = plan_coalitions(units, budget, np.random.default_rng(budget))
    rows = {row.tobytes() for row in plan.keeps}
    assert len(rows) == len(plan.keeps) <= budget
    assert {row.tobytes() for row in ~plan.keeps} == rows
    assert all(0 < size < units for size in plan.keeps.sum(axis=1))
    assert plan.exact == (budget >= 2**units - 2)
    # Nothing that a pair could use is left over.
    assert len(plan.keeps) >= min(budget - 1, 2**units - 2)
    if len(plan.keeps):
        assert plan.weights.sum() == pytest.approx(1)


@pytest.mark.parametrize(("units", "budget"), [(5, 12), (6, 8), (6, 30)])
def test_weights_are_unbiased_for_the_kernel(units, budget):
    sums = Counter()
    runs = 4000
    for seed in range(runs):
        plan = plan_coalitions(units, budget, np.random.default_rng(seed))
        for row, weight in zip(plan.keeps.tolist(), plan.weights.tolist(), strict=True):
            sums[tuple(row)] += weight / runs
    kernel = {size: 1 / (comb(units, size) * size * (units - size)) for size in range(1, units)}
    total = sum(comb(units, size) * kernel[size] for size in kernel)
    assert len(sums) == 2**units - 2
    for row, weight in sums.items():
        expected = kernel[sum(row)] / total
        assert weight == pytest.approx(expected, rel=0.2)
    assert level_mass(units).sum() == pytest.approx(1)


def test_outer_sizes_are_taken_whole():
    plan = plan_coalitions(12, 254, np.random.default_rng(0))
    sizes = Counter(plan.keeps.sum(axis=1).tolist())
    assert sizes[1] == sizes[11] == 12
    assert set(sizes) == set(range(1, 12))


def test_solution_satisfies_the_optimality_conditions():
    # The constrained regression by its Karush-Kuhn-Tucker system (Covert and Lee 2021).
    rng = np.random.default_rng(4)
    plan = plan_coalitions(9, 100, rng)
    gains, total = rng.normal(size=len(plan.keeps)), 1.7
    design = plan.keeps.astype(float)
    gram = design.T @ (plan.weights[:, None] * design)
    system = np.block([[gram, np.ones((9, 1))], [np.ones((1, 9)), np.zeros((1, 1))]])
    expected = np.linalg.solve(system, np.append(design.T @ (plan.weights * gains), total))[:9]
    phi, determined = solve_shapley(plan.keeps, plan.weights, gains, total)
    np.testing.assert_allclose(phi, expected, atol=1e-10)
    assert determined


def test_too_few_samples_give_the_smallest_solution_and_say_so():
    values = smooth_game(0, units=10)
    problem = game_problem(values)
    method = KernelShap(samples=10, estimator="least_squares")
    scores = method.attribute(problem, generators(1))[0].numpy()
    assert problem.ledger.evaluations == [10]
    assert problem.ledger.notes[0]["solution"] == "minimum norm"
    assert scores.sum() == pytest.approx(values[-1] - values[0], abs=1e-12)
    # Literally: a basis of the solutions of the constraints, and the pseudo-inverse.
    plan = plan_coalitions(10, 8, generators(1)[0])
    gains = np.array([values[number(row)] - values[0] for row in plan.keeps])
    basis = np.linalg.svd(np.ones((1, 10)))[2][1:].T
    start = np.full(10, (values[-1] - values[0]) / 10)
    root = np.sqrt(plan.weights)[:, None]
    inner = np.linalg.pinv(root * plan.keeps @ basis) @ (root[:, 0] * (gains - plan.keeps @ start))
    np.testing.assert_allclose(scores, start + basis @ inner, atol=1e-10)
    ends_only = game_problem(values)
    even = KernelShap(samples=2).attribute(ends_only, generators(1))[0]
    assert even.tolist() == pytest.approx([(values[-1] - values[0]) / 10] * 10)
    assert ends_only.ledger.evaluations == [2]


def test_scarce_samples_are_damped_by_a_pair_of_equal_effects():
    units, values = 10, smooth_game(0, units=10)
    problem = game_problem(values)
    scores = KernelShap(samples=40).attribute(problem, generators(1))[0].numpy()
    assert problem.ledger.notes[0]["solution"] == "damped least squares"
    assert scores.sum() == pytest.approx(values[-1] - values[0], abs=1e-12)
    # Literally: the minimum of the weighted squares and of the mean square that the kernel's law gives to effects.
    plan = plan_coalitions(units, 38, generators(1)[0])
    gains = np.array([values[number(row)] - values[0] for row in plan.keeps])
    law = [1 / (size * (units - size)) for size in range(1, units)]
    moment = np.zeros((units, units))
    for size, mass in enumerate(law, start=1):
        rows = np.array([[i in chosen for i in range(units)] for chosen in combinations(range(units), size)]) * 1.0
        rows -= size / units
        moment += mass / sum(law) * rows.T @ rows / len(rows)
    design = np.concatenate(
        [np.sqrt(plan.weights / plan.weights.sum())[:, None] * plan.keeps, np.zeros((units, units))]
    )
    eigenvalues, vectors = np.linalg.eigh(moment)
    design[len(plan.keeps) :] = (np.sqrt(eigenvalues.clip(0) / 19)[:, None] * vectors.T) @ (np.eye(units) - 1 / units)
    target = np.append(np.sqrt(plan.weights / plan.weights.sum()) * gains, np.zeros(units))
    basis = np.linalg.svd(np.ones((1, units)))[2][1:].T
    start = np.full(units, (values[-1] - values[0]) / units)
    inner = np.linalg.lstsq(design @ basis, target - design @ start, rcond=None)[0]
    np.testing.assert_allclose(scores, start + basis @ inner, atol=1e-10)


def test_damping_ends_at_six_samples_per_unit_and_helps_before():
    plain = KernelShap(samples=72, estimator="least_squares").attribute(game_problem(smooth_game(0)), generators(1))
    assert torch.equal(KernelShap(samples=72).attribute(game_problem(smooth_game(0)), generators(1)), plain)

    def error(seed, estimator):
        values = smooth_game(seed)
        method = KernelShap(samples=32, estimator=estimator)
        exact = by_subsets(values, 12)
        scores = method.attribute(game_problem(values), generators(1, seed))[0].numpy()
        return np.linalg.norm(scores - exact)

    damped, undamped = (
        sum(error(seed, name) for seed in range(8)) for name in ("damped_least_squares", "least_squares")
    )
    assert damped < 0.9 * undamped


def test_batch_does_not_matter():
    texts = ["good film not bad fine um film . good terrible film", "bad film"]
    together = KernelShap(samples=40).attribute(make_problem(Linear(), texts, of="probability"), generators(2))
    alone = KernelShap(samples=40).attribute(make_problem(Linear(), texts[:1], of="probability"), generators(1))
    assert torch.equal(together[0], alone[0])


@pytest.mark.parametrize("samples", [1, 0, -5])
def test_refuses_what_cannot_be(samples):
    with pytest.raises(InputError, match="samples"):
        KernelShap(samples=samples)


def test_budget_per_unit():
    texts = ["good film not bad fine um film . good terrible film", "good film not bad . um", "bad"]
    problem = make_problem(Linear(), texts, of="probability")
    method = KernelShap(samples_per_unit=2)
    scores = method.attribute(problem, generators(3))
    counts = problem.encoding.unit_counts
    assert problem.ledger.evaluations == [2 * n for n in counts] == [method.cost(n).forwards for n in counts]
    for text, count in enumerate(counts):
        alone = make_problem(Linear(), [texts[text]], of="probability")
        same = KernelShap(samples=2 * count).attribute(alone, [generators(3)[text]])
        assert torch.equal(scores[text, :count], same[0])
    # Both ends are always evaluated.
    assert KernelShap(samples_per_unit=1).cost(1).forwards == 2


def test_refuses_a_budget_per_unit_that_cannot_be():
    with pytest.raises(InputError, match="samples_per_unit"):
        KernelShap(samples_per_unit=0)
    with pytest.raises(InputError, match="not both"):
        KernelShap(samples=8, samples_per_unit=2)


def prior_covariance(rates, noise, rows):
    """Of the odd parts, interaction by interaction, in units of the smooth part's variance; one matrix per part."""
    units = rows.shape[1]
    signs = np.where(rows, 1.0, -1.0)
    smooth = np.zeros((len(rows), len(rows)))
    for size in range(1, units + 1, 2):
        for members in combinations(range(units), size):
            character = signs[:, members].prod(axis=1)
            smooth += rates[list(members)].prod() * np.outer(character, character)
    return smooth / smooth[0, 0], noise * np.eye(len(rows))


def every_pair(units):
    """One coalition of each pair, the full one first."""
    rows = (np.arange(2**units)[::-1, None] >> np.arange(units) & 1).astype(bool)
    return rows[rows[:, 0]]


@pytest.mark.parametrize("units", [2, 5, 6])
def test_gaussian_process_is_conditioning_on_all_coalitions(units):
    # Literally: the posterior mean of all 2^n values, and their Shapley values by subsets.
    rng = np.random.default_rng(units)
    rows = every_pair(units)
    seen = np.sort(np.append(0, 1 + rng.permutation(len(rows) - 1)[: len(rows) // 2]))
    odds = rng.normal(size=len(seen))
    rates, noise = fit_prior(np.where(rows[seen], 1.0, -1.0), odds)
    smooth, lone = prior_covariance(rates, noise, rows)
    joint = smooth + lone
    mean = joint[:, seen] @ np.linalg.solve(joint[np.ix_(seen, seen)], odds)
    values = np.zeros(2**units)
    for row, value in zip(rows, mean, strict=True):
        values[number(row)], values[number(~row)] = value, -value
    np.testing.assert_allclose(process_shapley(rows[seen], odds), by_subsets(values, units), atol=1e-8)


def test_shapley_values_of_the_two_parts():
    units = 7
    rates = np.random.default_rng(1).uniform(0.01, 0.9, units)
    rows = every_pair(units)
    signs = np.where(rows, 1.0, -1.0)
    for row in (0, 5, 40):
        game, lone = np.zeros(2**units), np.zeros(2**units)
        for subset in range(2**units):
            other = np.where(subset >> np.arange(units) & 1, 1.0, -1.0)
            same, opposite = 1 + rates * signs[row] * other, 1 - rates * signs[row] * other
            game[subset] = (same.prod() - opposite.prod()) / 2 / (1 + rates).prod()
        lone[number(rows[row])], lone[number(~rows[row])] = 1.0, -1.0
        np.testing.assert_allclose(smooth_values(signs, rates)[row], by_subsets(game, units), atol=1e-12)
        np.testing.assert_allclose(lone_values(rows)[row], by_subsets(lone, units), atol=1e-12)


def test_prior_is_fitted_to_the_units_that_matter():
    # Only the first three of ten units do anything, and they interact.
    rows = every_pair(10)[np.random.default_rng(0).permutation(512)[:200]]
    signs = np.where(rows, 1.0, -1.0)
    odds = signs[:, 0] + 0.5 * signs[:, 1] + 0.4 * signs[:, :3].prod(axis=1)
    rates, _ = fit_prior(signs, odds)
    assert rates[:3].min() > 10 * rates[3:].max()
    assert np.array_equal(process_shapley(rows, np.zeros(200)), np.zeros(10))


@pytest.mark.parametrize("samples", [2, 3, 10, 40, 500, 1023])
def test_gaussian_process_is_complete_within_its_budget(samples):
    values = smooth_game(1, units=10)
    problem, method = game_problem(values), KernelShap(samples=samples, estimator="gaussian_process")
    scores = method.attribute(problem, generators(1))[0].numpy()
    assert problem.ledger.evaluations[0] <= samples
    assert problem.ledger.notes[0].pop("solution") == "gaussian process"
    assert problem.ledger.notes[0].keys() == ({"caution"} if samples <= 10 else set())
    assert scores.sum() == pytest.approx(values[-1] - values[0], abs=1e-10)


def test_gaussian_process_is_exact_where_nothing_is_left_out():
    values = np.random.default_rng(8).normal(size=2**8)
    problem = game_problem(values)
    scores = KernelShap(samples=256, estimator="gaussian_process").attribute(problem, generators(1))[0]
    np.testing.assert_allclose(scores, by_subsets(values, 8), atol=1e-10)
    assert problem.ledger.notes[0]["solution"] == "exact"
    # And so is the process itself, by conditioning on every pair.
    rows = every_pair(8)
    odds = np.array([values[number(row)] - values[number(~row)] for row in rows]) / 2
    np.testing.assert_allclose(process_shapley(rows, odds), by_subsets(values, 8), atol=1e-8)


def test_gaussian_process_errs_less_than_least_squares():
    errors = np.zeros((2, 5))
    for seed in range(5):
        values = smooth_game(seed)
        truth = by_subsets(values, 12)
        for row, estimator in enumerate(("least_squares", "gaussian_process")):
            method = KernelShap(samples=256, estimator=estimator)
            scores = method.attribute(game_problem(values), generators(1, seed))[0].numpy()
            errors[row, seed] = np.linalg.norm(scores - truth) / np.linalg.norm(truth)
    assert errors[1].mean() < errors[0].mean()


def test_gaussian_process_does_not_depend_on_the_batch():
    texts = ["good film not bad fine um film . good terrible film", "bad film"]
    method = KernelShap(samples=40, estimator="gaussian_process")
    together = method.attribute(make_problem(Linear(), texts, of="probability"), generators(2))
    alone = method.attribute(make_problem(Linear(), texts[:1], of="probability"), generators(1))
    assert torch.equal(together[0], alone[0])


def test_refuses_an_unknown_estimator():
    with pytest.raises(InputError, match="Did you mean 'gaussian_process'"):
        KernelShap(estimator="gaussian process")


@pytest.mark.parametrize(("samples", "told"), [(3, True), (6, True), (8, False), (None, False)])
def test_too_few_evaluations_are_told(samples: int | None, told: bool) -> None:
    model = raison.load(lambda texts: [[len(text.split())] for text in texts], classes=["words"], name="words")
    explanation = raison.explain(model, "a b c d e f", "kernel_shap" if samples is None else KernelShap(samples))
    assert ("caution" in explanation.notes) is told
    if told:
        assert "cannot tell 6 units apart" in str(explanation.notes["caution"])
