"""Sparse linear models of values under masks."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

SWEEPS = 2000
STILL = 1e-9
"""Converged if the largest change of a coefficient in a sweep, relative to the largest coefficient, is below this."""


@dataclass(frozen=True, slots=True)
class Sparse:
    """v(z) = intercept + z . coefficients, and the share of the values' variance that it explains."""

    coefficients: Float[np.ndarray, " units"]
    intercept: float
    r_squared: float


def lasso(keeps: Bool[np.ndarray, "masks units"], values: Float[np.ndarray, " masks"], alpha: float) -> Sparse:
    """argmin 1 / (2 m) sum_s (v_s - b - x_s . w)^2 + alpha |w|_1, x the keeps scaled to mean 0 and variance 1.

    Coefficients apply to the unscaled keeps. A unit that is always or never kept has the coefficient 0.
    """
    weights = _solve(keeps, np.full((1, len(keeps)), 1 / len(keeps)), values, alpha)[0]
    intercept = float(values.mean() - keeps.mean(0) @ weights)
    residues = values - intercept - keeps @ weights
    spread = float(((values - values.mean()) ** 2).sum())
    return Sparse(weights, intercept, 1 - float((residues**2).sum()) / spread if spread > 0 else 1.0)


def lasso_resampled(
    keeps: Bool[np.ndarray, "masks units"],
    values: Float[np.ndarray, " masks"],
    alpha: float,
    counts: Float[np.ndarray, "draws masks"],
) -> Float[np.ndarray, "draws units"]:
    """The coefficients for each resample, given how often it draws each mask."""
    return _solve(keeps, counts / counts.sum(1, keepdims=True), values, alpha)


def _solve(
    keeps: Bool[np.ndarray, "masks units"],
    weights: Float[np.ndarray, "draws masks"],
    values: Float[np.ndarray, " masks"],
    alpha: float,
) -> Float[np.ndarray, "draws units"]:
    """Coordinate descent over the units, for all draws at once."""
    table = keeps.astype(float)
    mean = weights @ table
    scale = np.sqrt(np.clip(mean - mean**2, 0, None))
    scale[scale < 1e-12] = np.inf
    level = weights @ values
    slopes = ((weights * values) @ table - mean * level[:, None]) / scale
    gram = np.einsum("dm,mi,mj->dij", weights, table, table, optimize=True) - mean[:, :, None] * mean[:, None, :]
    gram /= scale[:, :, None] * scale[:, None, :]
    coefficients = np.zeros_like(slopes)
    for _ in range(SWEEPS):
        before = coefficients.copy()
        for unit in range(table.shape[1]):
            # A column has variance 1, or is 0 and has no effect.
            rest = (
                slopes[:, unit]
                - np.einsum("di,di->d", gram[:, unit], coefficients)
                + gram[:, unit, unit] * coefficients[:, unit]
            )
            coefficients[:, unit] = np.sign(rest) * np.clip(np.abs(rest) - alpha, 0, None)
        if np.abs(coefficients - before).max(initial=0.0) <= STILL * max(1e-12, np.abs(coefficients).max(initial=0.0)):
            break
    return coefficients / scale
