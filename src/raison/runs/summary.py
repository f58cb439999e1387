"""From records of single texts to means with intervals. Plain numbers: this file never needs torch."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raison.core.results.scores import MetricScores, Scores, Summary
from raison.numerics.measures.curves import SHARES
from raison.numerics.statistics.bootstrap import of_texts, pool_of, pooled, pooled_interval

Value = float | tuple[float, ...]
"""A metric's value on one text: a number, or the parts of a pooled value."""


@dataclass(frozen=True, slots=True)
class MetricInfo:
    """The description of a metric in the records, so that they can be read without the metric.

    `grouped` metrics judge groups of texts: they have no values of single texts.
    """

    label: str
    higher_is_better: bool | None
    pool: str = "mean"
    grouped: bool = False

    def __post_init__(self) -> None:
        pool_of(self.pool)

    @property
    def parts(self) -> int:
        """How many numbers a text's value consists of."""
        return parts_of(self.pool)


@dataclass(frozen=True, slots=True)
class Costs:
    """The cost of one explanation."""

    evaluations: float
    gradients: float
    seconds: float


def parts_of(pool: str) -> int:
    """How many numbers a text's value consists of, by how they are pooled."""
    return {"mean": 1, "curve": 1 + len(SHARES)}.get(pool, 2)


def table_of(seeds: Sequence[Sequence[Value]]) -> np.ndarray:
    """The values of every text under every seed as an array, (seeds, texts, parts)."""
    table = np.array([[_parts(value) for value in values] for values in seeds], dtype=np.float64)
    return table if table.ndim == 3 else table.reshape(len(seeds), -1, 1)


def metric_scores(
    info: MetricInfo,
    seeds: Sequence[Sequence[Value]] | np.ndarray,
    interval: bool = True,
    numbers: np.ndarray | None = None,
) -> MetricScores:
    """Scores from the values of every text under every seed, as an array (seeds, texts, parts).

    Of several predictions of a text, `numbers` has the text's for each. Without `interval`, its ends are NaN.
    """
    table = seeds if isinstance(seeds, np.ndarray) else table_of(seeds)
    make = pool_of(info.pool)
    parts = table.mean(axis=0)
    known = ~np.isnan(parts).all(axis=1)
    texts = np.arange(len(parts)) if numbers is None else numbers
    independent, pool = of_texts(parts[known], info.pool, texts[known])
    if interval:
        value, low, high = pooled_interval(independent, pool)
    else:
        value, low, high = pooled(independent, pool), math.nan, math.nan
    values = np.where(known, make(parts), np.nan)
    means = [pooled(*of_texts(of_seed[known], info.pool, texts[known])) for of_seed in table]
    return MetricScores(
        metric=info.label,
        higher_is_better=info.higher_is_better,
        values=tuple(values.tolist()),
        summary=Summary(value, low, high, len(independent)),
        pool=info.pool,
        parts=() if info.pool == "mean" else tuple(map(tuple, parts.tolist())),
        seed_means=tuple(means) if len(table) > 1 else (),
        texts=tuple(texts.tolist()) if len(set(texts.tolist())) < len(texts) else (),
    )


def method_scores(
    label: str, metrics: Sequence[MetricScores], costs: Sequence[Costs] | np.ndarray, selected_by: str | None = None
) -> Scores:
    """A method's row; `costs` are those of all its explanations: evaluations, gradients, seconds, (explanations, 3)."""
    if not isinstance(costs, np.ndarray):
        costs = np.array([(cost.evaluations, cost.gradients, cost.seconds) for cost in costs], dtype=np.float64)
    return Scores(
        method=label,
        metrics=tuple(metrics),
        evaluations=_summary(costs[:, 0]),
        gradients=_summary(costs[:, 1]),
        seconds=_summary(costs[:, 2]),
        selected_by=selected_by,
    )


def _summary(values: np.ndarray) -> Summary:
    return Summary(*pooled_interval(values.reshape(-1, 1)), len(values))


def _parts(value: Value) -> tuple[float, ...]:
    return value if isinstance(value, tuple) else (value,)
