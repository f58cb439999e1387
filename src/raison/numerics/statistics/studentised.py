"""The studentised bootstrap: a test for few values, whose spread is as uncertain as their mean."""

from collections.abc import Callable, Iterable

import numpy as np
from jaxtyping import Float

from raison.numerics.statistics.resampling import RESAMPLES, Weights

Columns = Float[np.ndarray, "texts columns"]
Means = Float[np.ndarray, "samples columns"]
Samples = Float[np.ndarray, " samples"]
Statistic = Callable[[Means], Samples]

_STEP = 1e-6
"""Step of the central differences that give a statistic's slopes, relative to the size of a column."""
_STILL = 1e-7
"""A standard error below this share of the columns' spread is rounding."""


def studentised_p(columns: Columns, statistic: Statistic, resamples: Iterable[Weights]) -> float:
    """Two-sided p-value, for "the statistic of the columns' means is 0", of the studentised bootstrap (Efron 1979).

    Each resample's deviation from the observed statistic is divided by the resample's own standard error (from the
    covariance of the columns and the statistic's slopes, the delta method), and so is the observed statistic by its
    own: p is twice the smaller share of resamples beyond it, (hits + 1) / (RESAMPLES + 1) on each side. A resample
    without spread that deviates counts as infinitely far, one whose statistic is undefined as beyond: both can only
    raise p. NaN if the statistic is undefined on the texts themselves. Texts that are all alike have no spread: then p
    is that of `alike_p`.
    """
    # The mean of equal numbers is another one by rounding.
    centre = np.where(np.ptp(columns, axis=0) == 0, columns[0], columns.mean(axis=0))
    # Deviations from the mean, so that variances keep their precision.
    deviations = columns - centre
    size = np.maximum(np.abs(columns).max(axis=0), _STEP)
    table = _CentredColumns(deviations, centre, size, statistic)
    (observed,), (error,) = table.moments(np.full((1, len(columns)), 1 / len(columns)))
    if np.isnan(observed):
        return float("nan")
    spread = float(deviations.std(axis=0).max())
    reached = _ratios(np.array([observed]), np.array([error]), spread)[0]
    if np.isinf(reached):
        return alike_p(float(observed), columns, statistic)
    above = below = 0
    for counts in resamples:
        values, errors = table.moments(counts / len(columns))
        ratios = _ratios(values - observed, errors, spread)
        unknown = np.isnan(ratios)
        above += int((unknown | (ratios >= reached)).sum())
        below += int((unknown | (ratios <= reached)).sum())
    return float(min(1.0, 2 * (min(above, below) + 1) / (RESAMPLES + 1)))


def alike_p(observed: float, columns: Columns, statistic: Statistic) -> float:
    """Two-sided p-value if all texts give the same value or difference: others, which were not drawn, may not.

    These could outweigh it if they are a share q of all texts, with (1 - q) |observed| = q size, where size is the
    largest observed magnitude, of the values or of the number that they are compared with. The probability that none of
    n texts is among them is (1 - q)^n.
    """
    nothing = float(np.nan_to_num(statistic(np.zeros((1, columns.shape[1])))[0]))
    size = max(float(np.abs(columns).max()), abs(nothing))
    share = abs(observed) / (abs(observed) + size)
    return float(min(1.0, 2 * (1 - share) ** len(columns)))


class _CentredColumns:
    """Columns as deviations from `centre`; `size` is the unit of the steps that slopes are estimated with."""

    def __init__(self, deviations: Columns, centre: np.ndarray, size: np.ndarray, statistic: Statistic) -> None:
        self._deviations, self._centre, self._size, self._statistic = deviations, centre, size, statistic
        self._products = np.einsum("ti,tj->tij", deviations, deviations).reshape(len(deviations), -1)

    def moments(self, weights: Weights) -> tuple[Samples, Samples]:
        """The statistic of each resample, and its standard error up to a factor that all samples share."""
        shifts = weights @ self._deviations
        means, columns = shifts + self._centre, shifts.shape[1]
        slopes = np.stack([self._slope(means, column) for column in range(columns)], axis=1)
        squares = (weights @ self._products).reshape(-1, columns, columns)
        covariances = squares - shifts[:, :, None] * shifts[:, None, :]
        variances = np.einsum("si,sij,sj->s", slopes, covariances, slopes)
        return self._statistic(means), np.sqrt(np.maximum(variances, 0.0))

    def _slope(self, means: Means, column: int) -> Samples:
        step = np.zeros(means.shape[1])
        step[column] = _STEP * self._size[column]
        return (self._statistic(means + step) - self._statistic(means - step)) / (2 * step[column])


def _ratios(gaps: Samples, errors: Samples, spread: float) -> Samples:
    """Gaps in standard errors; without a spread, zero if there is no gap and infinite if there is one."""
    still = errors <= _STILL * spread
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where(still, np.sign(gaps) * np.inf, gaps / errors)
    return np.where(still & (np.abs(gaps) <= _STILL * spread), 0.0, ratios)
