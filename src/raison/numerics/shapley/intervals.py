"""The uncertainty of Shapley values by weighted least squares, from the residuals of the drawn coalitions."""

from collections.abc import Callable, Sequence
from math import sqrt

import numpy as np
from jaxtyping import Float
from scipy.special import stdtrit

from raison.numerics.shapley.regression import RegressionPlan, solve_shapley

LEAST_FREE = 1e-6
"""If one minus a leverage is below this, it is a rounding error."""
UPPER = 0.975

Between = Callable[[Sequence[list[int]]], list[list[float]]]
"""The 95 % intervals of sums of scores, given by the numbers of their units."""


def intervals_of(
    plan: RegressionPlan, gains: Float[np.ndarray, " masks"], phi: Float[np.ndarray, " units"], damped: bool = False
) -> Between | None:
    """Student's t intervals of sums of the scores `phi`: of width 0 for exact scores, None for too few pairs.

    They are around the scores of least squares. `phi` are these scores, or `damped` ones, to which the intervals then
    extend.
    """
    covariance = np.zeros((len(phi), len(phi))) if plan.exact else shapley_covariance(plan, gains, float(phi.sum()))
    if covariance is None:
        return None
    center = solve_shapley(plan.keeps, plan.weights, gains, float(phi.sum()))[0] if damped else phi
    reach = 0.0 if plan.exact else float(stdtrit(len(plan.keeps) // 2 - (len(phi) - 1), UPPER))

    def between(sums: Sequence[list[int]]) -> list[list[float]]:
        bounds = []
        for numbers in sums:
            error = reach * sqrt(max(0.0, float(covariance[np.ix_(numbers, numbers)].sum())))
            middle, score = float(center[numbers].sum()), float(phi[numbers].sum())
            bounds.append([min(score, middle - error), max(score, middle + error)])
        return bounds

    return between


def shapley_covariance(
    plan: RegressionPlan, gains: Float[np.ndarray, " masks"], total: float
) -> Float[np.ndarray, "units units"] | None:
    """The covariance of the least squares solution over other draws of pairs; None for too few pairs.

    The sandwich estimate of a weighted regression: the squared residual of each drawn pair, divided by one minus its
    leverage (HC3; MacKinnon and White 1985), and multiplied by the share of its level that was not drawn. A pair is one
    observation, half the difference of its gains: its two rows are each other's negative.
    """
    units, half = plan.keeps.shape[1], len(plan.keeps) // 2
    if half < units:
        return None
    sizes = plan.keeps[:half].sum(axis=1)
    rows = plan.keeps[:half] - sizes[:, None] / units
    odds = (gains[:half] - gains[half:] - (2 * sizes - units) * total / units) / 2
    weights = plan.weights[:half]
    bread = np.linalg.pinv(rows.T @ (weights[:, None] * rows), rcond=1e-10, hermitian=True)
    residuals = odds - rows @ (bread @ (rows.T @ (weights * odds)))
    leverage = weights * np.einsum("pi,ij,pj->p", rows, bread, rows)
    errors = weights * residuals / np.clip(1 - leverage, LEAST_FREE, None)
    # A pair that alone determines some score leaves no residual.
    if (leverage[plan.unseen > 0] > 1 - LEAST_FREE).any():
        return None
    meat = rows.T @ ((plan.unseen * errors**2)[:, None] * rows)
    return np.asarray(bread @ meat @ bread)
