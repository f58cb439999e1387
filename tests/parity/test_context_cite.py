"""The surrogate of context_cite against the solver of the package context-cite, on equal ablations and outputs."""

import numpy as np
import pytest

from raison.numerics.perturbation.lasso import lasso

solver = pytest.importorskip("context_cite.solver", reason="the package context-cite is not installed")

pytestmark = pytest.mark.peer

TOKENS = 12


@pytest.mark.parametrize("units", [10, 30, 97])
def test_equal_ablations_give_equal_weights(units: int) -> None:
    rng = np.random.default_rng(units)
    keeps = rng.random((64, units)) < 0.5
    effects = np.where(rng.random(units) < 0.2, rng.normal(0, 5, units), 0)
    outputs = keeps @ effects + rng.normal(0, 1, 64) - 20
    weights, bias = solver.LassoRegression(lasso_alpha=0.01).fit(keeps, outputs, TOKENS)
    found = lasso(keeps, outputs / TOKENS, 0.01)
    # Theirs are of single precision and stop at scikit-learn's default tolerance.
    allowed = 5e-3 * np.abs(weights).max()
    np.testing.assert_allclose(found.coefficients * TOKENS, weights, atol=allowed)
    assert found.intercept * TOKENS == pytest.approx(bias, abs=units * allowed)
    assert np.abs(weights).max() > 1
