"""Linear models fitted to a model's values around one text."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float


@dataclass(frozen=True, slots=True)
class Surrogate:
    """A linear model: value = intercept + keep @ coefficients. `r_squared` is its weighted fit, 1 where exact."""

    coefficients: Float[np.ndarray, " units"]
    intercept: float
    r_squared: float


def weighted_ridge(
    keeps: Bool[np.ndarray, "masks units"],
    values: Float[np.ndarray, " masks"],
    weights: Float[np.ndarray, " masks"],
    alpha: float,
) -> Surrogate:
    """Minimise sum_s w_s (y_s - b - z_s c)^2 + alpha |c|^2 over c and b; the intercept b is not penalised.

    With alpha = 0 and too few keeps, it is the solution of least norm.
    """
    share = weights / weights.sum()
    design = keeps.astype(np.float64)
    centre, level = share @ design, float(share @ values)
    root = np.sqrt(weights)
    units = design.shape[1]
    # The penalty as additional rows: one solver for every alpha, without squaring the condition number.
    rows = np.vstack([root[:, None] * (design - centre), np.sqrt(alpha) * np.eye(units)])
    aims = np.concatenate([root * (values - level), np.zeros(units)])
    coefficients = np.linalg.lstsq(rows, aims, rcond=None)[0]
    intercept = level - float(centre @ coefficients)
    errors = share @ (values - intercept - design @ coefficients) ** 2
    spread = share @ (values - level) ** 2
    return Surrogate(coefficients, intercept, float(1 - errors / spread) if spread > 0 else 1.0)
