"""shap's KernelExplainer and ExactExplainer compute the same Shapley values where every coalition is evaluated."""

import numpy as np
import pytest

import raison
from raison.methods.kernel_shap import KernelShap
from raison.numerics.shapley.regression import solve_shapley
from tests.functions import CLASSES, rating, shares
from tests.toys import game_problem, generators

shap = pytest.importorskip("shap")
pytestmark = pytest.mark.peer


def as_function(values, units):
    """A game as a function of rows of zeros and ones."""
    return lambda rows: values[rows.astype(int) @ (2 ** np.arange(units))]


@pytest.mark.parametrize("units", [1, 2, 5, 9])
def test_kernel_explainer_with_all_coalitions(units):
    values = np.random.default_rng(units).normal(size=2**units)
    scores = KernelShap(samples=2**units).attribute(game_problem(values), generators(1))[0]
    explainer = shap.KernelExplainer(as_function(values, units), np.zeros((1, units)))
    # l1_reg is off: by default shap keeps ten features.
    found = explainer.shap_values(np.ones((1, units)), nsamples=2**units, l1_reg=False, silent=True)[0]
    np.testing.assert_allclose(scores, found, atol=1e-8)


def test_kernel_explainer_on_a_function_of_texts():
    words = "good film not bad quiet !".split()
    model = raison.load(shares, classes=CLASSES)
    found = raison.explain(model, " ".join(words), "kernel_shap(samples=64)", target="positive")

    def of_rows(rows):
        kept = [" ".join(word for word, stays in zip(words, row, strict=True) if stays) for row in rows]
        return shares(kept)[:, 1]

    explainer = shap.KernelExplainer(of_rows, np.zeros((1, len(words))))
    expected = explainer.shap_values(np.ones((1, len(words))), nsamples=64, l1_reg=False, silent=True)[0]
    np.testing.assert_allclose(found.scores, expected, atol=1e-8)


@pytest.mark.thorough
def test_text_masker_on_a_function_of_texts():
    # shap splits at white space as well, and puts the mask token in place of a word. Only of a sum both are exact.
    text = "good film not bad quiet"
    masker = shap.maskers.Text(r"\s+", mask_token="...", collapse_mask_token=False)
    expected = shap.Explainer(lambda texts: rating(list(texts)), masker)([text], silent=True)
    found = raison.explain(raison.load(rating, classes=["rating"]), text, "partition_shap", removal="ellipsis")
    assert [token.strip() for token in expected.data[0]] == [unit.text for unit in found.units]
    np.testing.assert_allclose(found.scores, expected.values[0], atol=1e-8)


def test_exact_explainer():
    values = np.random.default_rng(7).normal(size=2**7)
    scores = KernelShap().attribute(game_problem(values), generators(1))[0]
    explainer = shap.explainers.Exact(as_function(values, 7), np.zeros((1, 7)))
    np.testing.assert_allclose(scores, explainer(np.ones((1, 7))).values[0], atol=1e-8)


def test_solver_on_the_coalitions_that_shap_draws():
    # With fewer evaluations the two draw different coalitions; on the same ones the solutions agree.
    units, samples = 12, 300
    values = np.random.default_rng(3).normal(size=2**units)
    explainer = shap.KernelExplainer(as_function(values, units), np.zeros((1, units)), seed=0)
    found = explainer.shap_values(np.ones((1, units)), nsamples=samples, l1_reg=False, silent=True)[0]
    used = slice(0, explainer.nsamplesAdded)
    keeps, weights = explainer.maskMatrix[used].astype(bool), explainer.kernelWeights[used]
    gains = explainer.ey[used, 0] - values[0]
    phi, determined = solve_shapley(keeps, weights, gains, values[-1] - values[0])
    assert determined
    np.testing.assert_allclose(phi, found, atol=1e-8)
