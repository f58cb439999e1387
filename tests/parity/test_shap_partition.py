"""shap's PartitionExplainer computes the same Owen values on the same tree.

Under a budget both split the clusters of largest credit first, ten evaluations at a time (here more where there are
more than 80 in all), and share what is left equally; shap counts its two ends outside the budget of its queue but
inside `max_evals`, and breaks ties at random, so that games without ties agree at every even budget up to that. For
text its own tree differs: it scores merges by punctuation.
"""

import numpy as np
import pytest

from raison.methods.partition_shap import PartitionShap
from raison.methods.shapley_sampling import ShapleySampling
from tests.toys import game_problem, generators

shap = pytest.importorskip("shap")
pytestmark = pytest.mark.peer


def as_function(values, units):
    """A game as a function of rows of zeros and ones."""
    return lambda rows: values[rows.astype(int) @ (2 ** np.arange(units))]


def balanced(units):
    """The tree in scipy's format: rows of two children, height and size, children before parents."""
    rows = []

    def grow(first, last):
        if last - first == 1:
            return first
        middle = (first + last) // 2
        left, right = grow(first, middle), grow(middle, last)
        rows.append((left, right, last - first, last - first))
        return units + len(rows) - 1

    grow(0, units)
    return np.array(rows, dtype=float)


def by_shap(values, units, budget):
    masker = shap.maskers.Partition(np.zeros((1, units)), clustering=balanced(units))
    explainer = shap.explainers.Partition(as_function(values, units), masker)
    return explainer(np.ones((1, units)), max_evals=budget, silent=True).values[0]


@pytest.mark.parametrize("units", [2, 3, 5, 8, 11])
def test_exact_owen_values(units):
    values = np.random.default_rng(units).normal(size=2**units)
    scores = PartitionShap(samples=10_000).attribute(game_problem(values), generators(1))[0]
    np.testing.assert_allclose(scores, by_shap(values, units, 10_000), atol=1e-10)


@pytest.mark.parametrize("samples", [4, 12, 32, 64, 80, 100])
def test_refinement_under_a_budget(samples):
    values = np.random.default_rng(samples).normal(size=2**12)
    scores = PartitionShap(samples=samples).attribute(game_problem(values), generators(1))[0]
    np.testing.assert_allclose(scores, by_shap(values, 12, samples), atol=1e-10)


def test_permutation_explainer_on_an_additive_game():
    # The two draw different orders; on an additive game every order gives the Shapley values.
    effects = np.random.default_rng(2).normal(size=9)
    values = (np.arange(2**9)[:, None] >> np.arange(9) & 1) @ effects
    scores = ShapleySampling(samples=40).attribute(game_problem(values), generators(1))[0]
    explainer = shap.explainers.Permutation(as_function(values, 9), np.zeros((1, 9)), seed=0)
    found = explainer(np.ones((1, 9)), max_evals=40, silent=True).values[0]
    np.testing.assert_allclose(scores, effects, atol=1e-12)
    np.testing.assert_allclose(found, effects, atol=1e-12)
