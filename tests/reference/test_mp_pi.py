from itertools import product
from math import comb, factorial

import numpy as np
import pytest
import torch

from raison.core.errors import InputError
from raison.methods.mp_pi import DRAWS, MpPi
from raison.numerics.shapley.progressive import LONGEST_OPTIMAL, mask_law, sample_masks
from tests.toys import TEXTS, TOYS, Linear, game_problem, generators, make_problem

CONSISTENT = {"sampling": "shapley", "weights": "coalition"}


@pytest.fixture(autouse=True, scope="module")
def cache(tmp_path_factory):
    """The user's own cache is neither read nor filled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAISON_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def shapley_values(values, units):
    phi = np.zeros(units)
    for subset in range(2**units):
        size = subset.bit_count()
        for unit in range(units):
            if not subset >> unit & 1:
                weight = factorial(size) * factorial(units - size - 1) / factorial(units)
                phi[unit] += weight * (values[subset | 1 << unit] - values[subset])
    return phi


def smooth_game(seed, units):
    """A random network's output over all keeps."""
    rng = np.random.default_rng(seed)
    bits = (np.arange(2**units)[:, None] >> np.arange(units)) & 1
    return np.tanh(bits @ rng.normal(size=(units, 16)) * 0.6 + rng.normal(size=16)) @ rng.normal(size=16)


def drawn(units, method, rng):
    """Masks one by one until the budget's number of different ones is reached."""
    rounds = method.budget - 2
    masks = []
    for mask in sample_masks(mask_law(units, method.sampling, method.suffix), DRAWS * rounds, rng).tolist():
        if len({tuple(old) for old in masks}) < rounds:
            masks.append(mask)
    return masks


def literal(values, units, method, rng):
    """Algorithm 1 step by step, each coalition of each mask a row of its own, solved by its optimality conditions."""
    rows = []
    for mask in drawn(units, method, rng):
        found = []
        for read in range(1, units + 1):
            coalition = tuple(kept and place < read for place, kept in enumerate(mask))
            if coalition not in found and 0 < sum(coalition) < units:
                found.append(coalition)
        rows += found
    total = np.array([weight_of(row, units, method) for row in rows])
    design = np.array(rows, dtype=float)
    gains = np.array([values[sum(1 << i for i, kept in enumerate(row) if kept)] for row in rows]) - values[0]
    gram = design.T @ (total[:, None] * design)
    system = np.block([[gram, np.ones((units, 1))], [np.ones((1, units)), np.zeros((1, 1))]])
    return np.linalg.solve(system, np.append(design.T @ (total * gains), values[-1] - values[0]))[:units]


def weight_of(row, units, method):
    """P*(S) / P^D(S) by going through all masks of the law; for a class, both summed over its coalitions."""
    law = mask_law(units, method.sampling, method.suffix)
    alike = [row]
    if method.weights != "coalition":
        last = max(np.flatnonzero(row))
        alike = [
            (*early, True, *[False] * (units - last - 1))
            for early in product([False, True], repeat=last)
            if sum(early) + 1 == sum(row)
        ]
    density = 0.0
    for size in range(1, units):
        for last in range(size, units + 1):
            for early in product([False, True], repeat=last - 1):
                if sum(early) + 1 == size:
                    mask = np.array([*early, True, *[method.suffix] * (units - last)])
                    share = law.draw[size - 1, last - 1] / comb(last - 1, size - 1)
                    if method.weights == "pass":
                        share /= mask.sum()
                    for other in alike:
                        end = max(np.flatnonzero(other))
                        density += share * (tuple(mask[: end + 1]) == other[: end + 1])
    size = sum(row)
    return len(alike) / (comb(units, size) * size * (units - size)) / density


@pytest.mark.parametrize("suffix", [True, False])
@pytest.mark.parametrize("weights", ["pass", "class", "coalition"])
@pytest.mark.parametrize("sampling", ["optimal", "shapley"])
def test_equals_the_literal_algorithm(sampling, weights, suffix):
    values = np.random.default_rng(5).normal(size=2**5)
    method = MpPi(budget=22, sampling=sampling, weights=weights, suffix=suffix)
    problem = game_problem(values)
    scores = method.attribute(problem, generators(1))[0]
    np.testing.assert_allclose(scores, literal(values, 5, method, generators(1)[0]), atol=1e-9)
    assert problem.ledger.notes[0]["solution"] == "least squares"
    # Masks that were drawn again cost nothing.
    masks = drawn(5, method, generators(1)[0])
    assert problem.ledger.evaluations == [2 + len(np.unique(masks, axis=0))]
    assert len(masks) > len(np.unique(masks, axis=0))
    assert problem.ledger.evaluations[0] <= 22 == method.cost(5).forwards


@pytest.mark.parametrize("removal", ["mask", "delete"])
@pytest.mark.parametrize("toy", TOYS)
def test_sums_to_the_difference_on_toys(toy, removal):
    problem = make_problem(toy(), TEXTS, removal=removal, of="probability")
    scores = MpPi().attribute(problem, generators(len(TEXTS)))
    for text, count in enumerate(problem.encoding.unit_counts):
        keeps = torch.tensor([[True], [False]]).expand(2, count)
        full, empty = problem.model.masked_logits(problem.encoding.select([text]), [keeps], removal)[0].softmax(-1)[
            :, 1
        ]
        assert float(scores[text].sum()) == pytest.approx(float(full - empty))
        assert torch.all(scores[text, count:] == 0)
        assert problem.ledger.evaluations[text] <= MpPi().cost(count).forwards == 2 * count


@pytest.mark.parametrize("toy", TOYS)
def test_reaches_the_exact_values_on_toys(toy):
    """The toys' predictions on the way are those of the masked text: nothing but sampling is between."""
    problem = make_problem(toy(), [TEXTS[1]], of="probability")
    units = problem.encoding.unit_counts[0]
    bits = torch.tensor(list(product([False, True], repeat=units))).flip(1)
    values = problem.model.masked_logits(problem.encoding, [bits], "mask")[0].softmax(-1)[:, 1].numpy()
    truth = shapley_values(values, units)
    errors = []
    for budget in (2 * units, 6000):
        runs = [MpPi(budget=budget, **CONSISTENT).attribute(problem, generators(1, seed))[0] for seed in range(3)]
        errors.append(np.mean([np.abs(run.numpy() - truth).max() for run in runs]))
    assert errors[1] < 0.03 * np.abs(truth).max()
    # Of a game that is additive every budget leaves the rounding of a linear system, whichever of the two is greater.
    rounding = units**3 * np.finfo(values.dtype).eps * np.abs(values).max()
    assert errors[1] < errors[0] or max(errors) < rounding


@pytest.mark.parametrize("method", [MpPi(**CONSISTENT), MpPi(sampling="shapley", suffix=False, weights="class")])
def test_error_falls_with_the_budget(method):
    budgets = (16, 128, 1024, 8192)
    errors = np.zeros((2, len(budgets)))
    for seed in range(2):
        values = smooth_game(seed, 8)
        truth = shapley_values(values, 8)
        for column, budget in enumerate(budgets):
            chosen = MpPi(budget=budget, sampling="shapley", weights=method.weights, suffix=method.suffix)
            scores = chosen.attribute(game_problem(values), generators(1, seed))[0].numpy()
            errors[seed, column] = np.linalg.norm(scores - truth) / np.linalg.norm(truth)
    means = errors.mean(axis=0)
    assert np.all(means[1:] < 0.7 * means[:-1])
    assert means[-1] < 0.03


def test_the_papers_weights_leave_an_error_that_no_budget_removes():
    left = {"class": [], "coalition": []}
    for seed in range(4):
        values = smooth_game(seed, 8)
        truth = shapley_values(values, 8)
        for weights, errors in left.items():
            method = MpPi(budget=4096, sampling="shapley", weights=weights)
            scores = method.attribute(game_problem(values), generators(1, seed))[0].numpy()
            errors.append(np.linalg.norm(scores - truth) / np.linalg.norm(truth))
    assert np.mean(left["class"]) > 0.05 > 2 * np.mean(left["coalition"])


@pytest.mark.parametrize("sampling", ["optimal", "shapley"])
@pytest.mark.parametrize("weights", ["pass", "class", "coalition"])
def test_additive_games_are_solved_with_few_passes(sampling, weights):
    own = np.array([0.5, -1.0, 2.0, 0.25, -0.75, 1.5, 0.0])
    bits = (np.arange(2**7)[:, None] >> np.arange(7)) & 1
    problem = game_problem(bits @ own + 3)
    scores = MpPi(sampling=sampling, weights=weights).attribute(problem, generators(1))[0]
    np.testing.assert_allclose(scores, own, atol=1e-9)
    assert problem.ledger.evaluations[0] <= 14


@pytest.mark.parametrize("sampling", ["optimal", "shapley"])
def test_the_shortest_texts(sampling):
    one = game_problem(np.array([0.5, 2.0]))
    assert MpPi(sampling=sampling).attribute(one, generators(1)).tolist() == [[1.5]]
    assert one.ledger.evaluations == [2] == [MpPi(budget=50).cost(1).forwards]
    # With both units alone among the coalitions, two units are exact.
    two = game_problem(np.array([0.5, 2.0, -1.0, 4.0]))
    scores = MpPi(budget=40, sampling=sampling, suffix=False).attribute(two, generators(1))[0]
    assert scores.tolist() == pytest.approx(shapley_values([0.5, 2.0, -1.0, 4.0], 2).tolist(), abs=0.6)
    assert float(scores.sum()) == pytest.approx(3.5)


def test_too_few_passes_say_so():
    values = smooth_game(0, 10)
    even = game_problem(values)
    scores = MpPi(budget=2).attribute(even, generators(1))[0]
    assert scores.tolist() == pytest.approx([(values[-1] - values[0]) / 10] * 10)
    assert even.ledger.evaluations == [2]
    assert even.ledger.notes == [{"solution": "minimum norm", "coalitions": 0, "sampling": "optimal"}]
    one = game_problem(values)
    MpPi(budget=3, sampling="shapley", suffix=False).attribute(one, generators(1, 1))
    assert one.ledger.notes[0]["solution"] == "minimum norm"


def test_the_note_says_how_masks_of_long_texts_were_drawn():
    texts = ["bad film good", " ".join(["film"] * (LONGEST_OPTIMAL + 1))]
    problem = make_problem(Linear(), texts, of="probability")
    MpPi(budget=8).attribute(problem, generators(2))
    assert [notes["sampling"] for notes in problem.ledger.notes] == ["optimal", "shapley"]


def test_batch_does_not_matter():
    texts = ["good film not bad fine um film . good terrible film", "bad film", "bad"]
    together = MpPi().attribute(make_problem(Linear(), texts, of="probability"), generators(3))
    alone = MpPi().attribute(make_problem(Linear(), texts[:1], of="probability"), generators(1))
    assert torch.equal(together[0], alone[0])


def test_refuses_what_cannot_be():
    for budget in (1, 0, -4, True):
        with pytest.raises(InputError, match="budget of mp_pi"):
            MpPi(budget=budget)
    with pytest.raises(InputError, match="budget_per_unit of mp_pi"):
        MpPi(budget_per_unit=0)


@pytest.mark.parametrize(
    ("setting", "value", "says"),
    [
        ("sampling", "shaply", "Did you mean 'shapley'"),
        ("weights", "none", "weights of mp_pi"),
        ("suffix", "yes", "suffix of mp_pi"),
        ("budget", 3.5, "budget of mp_pi"),
    ],
)
def test_refuses_what_types_forbid(setting, value, says):
    with pytest.raises(InputError, match=says):
        MpPi(**{setting: value})
