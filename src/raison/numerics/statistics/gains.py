"""The gain of a model over another one, relative to the other's value (Ye et al. 2021; Xie et al. 2024)."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from raison.numerics.statistics.crossed import crossed_interval

Table = Float[np.ndarray, "tasks seeds"]


@dataclass(frozen=True, slots=True)
class Gain:
    """A mean over `count` pairs of task and seed with its 95 % interval; 0.1 is ten per cent better."""

    mean: float
    low: float
    high: float
    count: int


def relative_gains(values: Table, references: Table, higher_is_better: bool) -> Table:
    """Gain of every task and seed: (value - reference) / |mean reference of the task|, positive where it is better.

    The sign is turned where lower is better. The divisor is the task's mean over the seeds that both have: one seed
    whose reference happens to lie near zero does not decide, and the mean over seeds is the gain of the means. NaN
    where either value is, and for a task whose mean reference is zero.
    """
    both = ~(np.isnan(values) | np.isnan(references))
    counts = both.sum(axis=1, keepdims=True)
    sums = np.where(both, references, 0.0).sum(axis=1, keepdims=True)
    scale = np.abs(np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0))
    change = np.where(both, values - references, np.nan) * (1 if higher_is_better else -1)
    return np.divide(change, scale, out=np.full(change.shape, np.nan), where=scale > 0)


def average_relative_gain(values: Table, references: Table, higher_is_better: bool) -> Gain:
    """Mean over tasks and seeds of the relative gain; its percentile bootstrap resamples tasks and seeds
    (crossed_interval), because the seeds of a task share its texts and its divisor.

    A pair without a gain is left out. One pair has no spread, its interval is NaN; no pair gives NaN throughout.
    """
    gains = relative_gains(values, references, higher_is_better)
    known = ~np.isnan(gains)
    return Gain(*crossed_interval(gains[known.any(axis=1)]), int(known.sum()))
