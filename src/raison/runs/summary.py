"""Records of single texts -> means with intervals. Plain numbers: this file never needs torch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raison.core.results import MetricScores, Scores, Summary
from raison.numerics.bootstrap import pool_of, pooled, pooled_interval

Value = float | tuple[float, ...]
"""What a metric measured on one text: a number, or the parts of a pooled value."""


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """What the records must say of a metric so that they can be read without it.

    `grouped` metrics judge groups of texts: their values are no texts' values.
    """

    label: str
    higher_is_better: bool | None
    pool: str = "mean"
    grouped: bool = False


@dataclass(frozen=True, slots=True)
class Costs:
    """What one explanation took."""

    evaluations: float
    gradients: float
    seconds: float


def metric_scores(info: MetricInfo, seeds: Sequence[Sequence[Value]], interval: bool = True) -> MetricScores:
    """Scores from the values of every text under every seed, (seeds, texts); with NaN for an interval not wanted."""
    table = np.array([[_parts(value) for value in values] for values in seeds], dtype=np.float64)
    if table.ndim < 3:
        table = table.reshape(len(seeds), -1, 1)
    make = pool_of(info.pool)
    parts = table.mean(axis=0)
    known = ~np.isnan(parts).all(axis=1)
    if interval:
        value, low, high = pooled_interval(parts[known], info.pool)
    else:
        value, low, high = pooled(parts[known], info.pool), math.nan, math.nan
    values = np.where(known, make(parts), np.nan)
    means = [
        float(make(of_seed[known].mean(axis=0, keepdims=True))[0]) if known.any() else math.nan for of_seed in table
    ]
    return MetricScores(
        metric=info.label,
        higher_is_better=info.higher_is_better,
        values=tuple(values.tolist()),
        summary=Summary(value, low, high, int(known.sum())),
        pool=info.pool,
        parts=() if info.pool == "mean" else tuple(map(tuple, parts.tolist())),
        seed_means=tuple(means) if len(seeds) > 1 else (),
    )


def method_scores(
    label: str, metrics: Sequence[MetricScores], costs: Sequence[Costs], selected_by: str | None = None
) -> Scores:
    """A method's row; `costs` are those of all its explanations."""
    return Scores(
        method=label,
        metrics=tuple(metrics),
        evaluations=_summary([cost.evaluations for cost in costs]),
        gradients=_summary([cost.gradients for cost in costs]),
        seconds=_summary([cost.seconds for cost in costs]),
        selected_by=selected_by,
    )


def _summary(values: Sequence[float]) -> Summary:
    return Summary(*pooled_interval(np.array(values, dtype=np.float64).reshape(-1, 1)), len(values))


def _parts(value: Value) -> tuple[float, ...]:
    return value if isinstance(value, tuple) else (value,)
