"""Statistics of a table of methods: differences from the best, ranks, the cost of selection, Pareto fronts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from raison.core.results.scores import Comparison, MetricScores, Scores
from raison.numerics.statistics import ranks
from raison.numerics.statistics.best import of_any_pair
from raison.numerics.statistics.bootstrap import of_texts
from raison.numerics.statistics.paired import Difference, difference
from raison.numerics.statistics.pareto import front
from raison.runs.judging import UNKNOWN
from raison.runs.summary import table_of

BACKWARD = 2
"""The cost of a backward pass in forward passes."""


@dataclass(frozen=True, slots=True)
class PairedContrast:
    """One method minus the best of a metric's column, text by text.

    `p` is for "both are equally good", though the best was found on the same texts: the largest of the two tests of
    the difference and of the chance that any two of the metric's methods differ as much (numerics.statistics.best),
    times the number of metrics (Bonferroni). It is NaN for the best method itself.
    """

    method: str
    best: str
    difference: Difference
    p: float


@dataclass(frozen=True, slots=True)
class Selection:
    """The cost of selecting each text's map by a metric: `values[i][j]` is selected by i, evaluated by j.

    A chooser of None is the method without selection, if the table has it. `differences[i][j]` is that value minus the
    one of choosing by the judge itself; None on this diagonal, and if that judge selected nothing. `judges` are the
    choosers first, in their order, then the table's other metrics with a direction.
    """

    method: str
    choosers: tuple[str | None, ...]
    judges: tuple[str, ...]
    values: tuple[tuple[MetricScores, ...], ...]
    differences: tuple[tuple[Difference | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Point:
    """A method's mean value at its cost; `best` if no other is cheaper and as good, or better at the same cost."""

    row: Scores
    scores: MetricScores
    cost: float
    best: bool


def directed(comparison: Comparison) -> dict[str, bool]:
    """The metrics with a direction -> whether higher is better, in the table's order."""
    directions: dict[str, bool] = {}
    for row in comparison.rows:
        for scores in row.metrics:
            if scores.higher_is_better is not None:
                directions.setdefault(scores.metric, scores.higher_is_better)
    return directions


def contrasts(comparison: Comparison) -> dict[str, list[PairedContrast]]:
    """Each method's difference from the best, for every metric with a direction.

    Metrics without a defined mean have an empty list. Rows keep the table's order.
    """
    directions = directed(comparison)
    return {metric: _contrasts(comparison, metric, higher, len(directions)) for metric, higher in directions.items()}


def _contrasts(comparison: Comparison, metric: str, higher: bool, metrics: int) -> list[PairedContrast]:
    best = _best(comparison, metric, higher)
    if best is None:
        return []
    rows = _having(comparison, metric)
    gaps = [subtract(row[metric], best[metric]) for row in rows]
    same = [row for row, gap in zip(rows, gaps, strict=True) if gap is not UNKNOWN]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.array([gap.mean for gap in gaps]) / np.array([gap.error for gap in gaps])
    tables, pool = independent([row[metric] for row in same])
    chances = of_any_pair(tables, pool, ratios)
    ps = [min(1.0, metrics * max(gap.confirmed, p)) for gap, p in zip(gaps, chances.tolist(), strict=True)]
    return [
        PairedContrast(row.method, best.method, gap, math.nan if row is best else p)
        for row, gap, p in zip(rows, gaps, ps, strict=True)
    ]


def mean_ranks(comparison: Comparison) -> dict[str, float]:
    """Each method's mean rank over the metrics with a direction, 1 = best; NaN if it has no value at all."""
    directions = directed(comparison)
    if not directions:
        return {}
    values = np.array([[_mean(row, metric) for metric in directions] for row in comparison.rows], dtype=np.float64)
    of_rows = ranks.mean_ranks(values, list(directions.values()))
    return {row.method: float(rank) for row, rank in zip(comparison.rows, of_rows, strict=True)}


def selection(comparison: Comparison) -> list[Selection]:
    """The matrix *selected by i, evaluated by j* of each method with selected maps, including controls."""
    chosen: dict[str, list[Scores]] = {}
    for row in comparison.rows:
        if row.selected_by is not None:
            chosen.setdefault(row.method.removesuffix(f" by {row.selected_by}"), []).append(row)
    return [_selection(comparison, method, rows) for method, rows in chosen.items()]


def cost(row: Scores) -> float:
    """Passes per text, in forward passes: evaluations, and twice the gradients.

    The forward pass of a gradient is among the evaluations; a backward pass costs about twice as much.
    """
    return row.evaluations.mean + BACKWARD * row.gradients.mean


def pareto(comparison: Comparison, metric: str) -> list[Point]:
    """A metric against cost. Rows selected by another metric are left out, because here they would only be noise."""
    higher = directed(comparison)[metric]
    rows = [row for row in _having(comparison, metric) if row.selected_by in (None, metric)]
    costs, values = [cost(row) for row in rows], [_mean(row, metric) for row in rows]
    on_front = set(front(costs, values, higher))
    return [Point(row, row[metric], costs[number], number in on_front) for number, row in enumerate(rows)]


def subtract(first: MetricScores, second: MetricScores) -> Difference:
    """First minus second on the texts (or groups) that both have; NaN throughout if they do not have the same texts."""
    if parts_of(first).shape != parts_of(second).shape or first.pool != second.pool:
        return UNKNOWN
    (one, other), pool = independent([first, second])
    return difference(one, other, pool)


def _selection(comparison: Comparison, method: str, rows: list[Scores]) -> Selection:
    metrics = [scores.metric for scores in rows[0].metrics if scores.higher_is_better is not None]
    by = {row.selected_by: row for row in rows}
    judges = [metric for metric in by if metric in metrics] + [metric for metric in metrics if metric not in by]
    plain = [row for row in comparison.rows if row.selected_by is None and row.method == method]
    shown = [*plain, *rows]
    return Selection(
        method=method,
        choosers=tuple(row.selected_by for row in shown),
        judges=tuple(str(judge) for judge in judges),
        values=tuple(tuple(row[str(judge)] for judge in judges) for row in shown),
        differences=tuple(
            tuple(
                subtract(row[str(judge)], by[judge][str(judge)]) if judge in by and by[judge] is not row else None
                for judge in judges
            )
            for row in shown
        ),
    )


def _best(comparison: Comparison, metric: str, higher: bool) -> Scores | None:
    rows = [row for row in _having(comparison, metric) if math.isfinite(_mean(row, metric))]
    return max(rows, key=lambda row: _mean(row, metric) * (1 if higher else -1), default=None)


def _having(comparison: Comparison, metric: str) -> list[Scores]:
    return [row for row in comparison.rows if any(scores.metric == metric for scores in row.metrics)]


def _mean(row: Scores, metric: str) -> float:
    return next((scores.summary.mean for scores in row.metrics if scores.metric == metric), math.nan)


def parts_of(scores: MetricScores) -> np.ndarray:
    """The pool's values per text; infinite values, which have no difference, count as undefined."""
    table = values_of(scores)
    return np.where(np.isfinite(table), table, np.nan)


def independent(cells: Sequence[MetricScores]) -> tuple[list[np.ndarray], str]:
    """`parts_of` several cells of one metric, and their pool. Where predictions share texts, each text has one row, of
    the predictions that all cells have."""
    tables, first = [parts_of(cell) for cell in cells], cells[0]
    if not first.texts:
        return tables, first.pool
    known = ~np.isnan(np.hstack(tables)).any(axis=1)
    rows = [of_texts(table[known], first.pool, np.array(first.texts)[known]) for table in tables]
    return [table for table, _ in rows], rows[0][1]


def values_of(scores: MetricScores) -> np.ndarray:
    """The values that a cell is the mean of, (texts, parts); NaN where undefined."""
    return table_of([scores.parts or scores.values])[0]
