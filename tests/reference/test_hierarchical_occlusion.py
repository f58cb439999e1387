import numpy as np
import pytest
import torch

from raison.core.errors import InputError
from raison.core.inputs.unit import runs_of
from raison.core.method import Cost
from raison.methods.hierarchical_occlusion import HierarchicalOcclusion
from raison.methods.occlusion import Occlusion
from tests.toys import TEXTS, TOYS, game_problem, generators, make_problem, named


def literal(values, groups, opened, share):
    """v is indexed by the bits of a keep; the drops of groups first, then of the units of those that are opened."""
    n = sum(len(group) for group in groups)
    full = (1 << n) - 1
    drops = [values[full] - values[full - sum(1 << i for i in group)] for group in groups]
    ranked = sorted((g for g in range(len(groups)) if len(groups[g]) > 1), key=lambda g: -drops[g])
    chosen = [g for g in ranked if drops[g] > 0 and drops[g] >= share * max(drops)][:opened]
    scores = [0.0] * n
    known = []
    for g, group in enumerate(groups):
        for i in group:
            if g in chosen or len(group) == 1:
                scores[i] = values[full] - values[full - (1 << i)]
                known.append(i)
    return scores, drops, known


@pytest.mark.parametrize("opened", [0, 1, 2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_random_games_by_the_formula(seed, opened):
    values = np.random.default_rng(seed).normal(size=2**8)
    names = ["a", "a", "b", "", "c", "c", "c", "b"]
    groups = [[0, 1], [2], [3], [4, 5, 6], [7]]
    problem = named(game_problem(values), names)
    assert runs_of(problem.encoding.units[0]) == groups
    scores = HierarchicalOcclusion(opened=opened, share=0.1).attribute(problem, generators(1))[0]
    expected, drops, known = literal(values, groups, opened, 0.1)
    np.testing.assert_allclose(scores, expected, atol=1e-12)
    [notes] = problem.ledger.notes
    np.testing.assert_allclose(notes["groups"], drops, atol=1e-12)
    assert notes["exact"] == known
    looked = sum(len(group) for group in groups if len(group) > 1 and group[0] in known)
    assert problem.ledger.evaluations == [1 + len(groups) + looked]


@pytest.mark.parametrize("toy", TOYS)
def test_without_names_it_is_occlusion(toy):
    one, other = (make_problem(toy(), TEXTS, removal="mask", of="probability") for _ in range(2))
    found = HierarchicalOcclusion().attribute(one, generators(len(TEXTS)))
    torch.testing.assert_close(found, Occlusion().attribute(other, generators(len(TEXTS))))
    assert one.ledger.evaluations == other.ledger.evaluations


def test_cost_is_a_bound_for_any_names():
    # Every group has a pass; only groups of several units, at most half as many, are looked into.
    assert HierarchicalOcclusion().cost(60) == Cost(91)


@pytest.mark.parametrize("settings", [{"opened": -1}, {"share": 2.0}, {"share": -0.1}])
def test_refuses_what_cannot_be(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        HierarchicalOcclusion(**settings)
