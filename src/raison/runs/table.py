"""A run's records as a comparison of methods."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from raison.core.errors import DataError
from raison.core.results import Comparison, MetricScores, Scores
from raison.runs.run import CAUTIONS, OUTPUTS, Run
from raison.runs.summary import MetricInfo, method_scores, metric_scores, table_of


def comparison(run: Run) -> Comparison:
    """Methods side by side on the texts that all of them have been judged on, and so for each label of several.

    Raises DataError where there is no such text yet.
    """
    texts = finished_texts(run)
    if not len(texts):
        raise DataError(f"{run.folder} has no text yet that every method has explained: let the run finish first.")
    metrics = [MetricInfo(**metric) for metric in run.header["metrics"]]
    whole = _table(run, metrics, texts)
    first = run.header["rows"][0]
    targets = run.records.targets(first["label"], first["seeds"][0], texts)
    if run.header.get(OUTPUTS) != "labels" or len(set(targets)) < 2:
        return whole
    own = [metric for metric in metrics if not metric.grouped]
    return replace(
        whole,
        by_target={name: _table(run, own, texts[[own == name for own in targets]]) for name in dict.fromkeys(targets)},
    )


def _table(run: Run, metrics: Sequence[MetricInfo], texts: np.ndarray) -> Comparison:
    rows = [_scores(run, row, metrics, texts) for row in run.header["rows"]]
    seeds = sorted({seed for row in run.header["rows"] for seed in row["seeds"]})
    settings = {**run.header["settings"], "seeds": seeds}
    if OUTPUTS in run.header:
        settings[OUTPUTS] = run.header[OUTPUTS]
    return Comparison(
        rows=tuple(rows),
        model=run.header["model"],
        data=run.header["data"],
        texts=len(texts),
        unit=settings["unit"],
        of=settings["of"],
        seed=settings["seed"],
        settings=settings,
        cautions=tuple(run.header.get(CAUTIONS, ())),
    )


def scores_of(run: Run, row: str, metric: str, texts: np.ndarray) -> MetricScores | None:
    """One cell of `comparison`, without the others and its interval; None where the run has no such row or metric."""
    rows = [known for known in run.header["rows"] if known["label"] == row]
    metrics = [MetricInfo(**known) for known in run.header["metrics"]]
    asked = [known for known in metrics if known.label == metric]
    return _cell(run, rows[0], (asked[0], metrics), texts, interval=False) if rows and asked else None


def finished_texts(run: Run) -> np.ndarray:
    """The numbers of the texts that have a record of every row and seed."""
    rows = [(row["label"], seed) for row in run.header["rows"] for seed in row["seeds"]]
    done = np.logical_and.reduce([run.records.done(*row) for row in rows])
    return np.flatnonzero(done)


def _scores(run: Run, row: dict[str, Any], metrics: Sequence[MetricInfo], texts: np.ndarray) -> Scores:
    label, seeds = row["label"], row["seeds"]
    cells = [_cell(run, row, (metric, metrics), texts) for metric in metrics]
    costs = np.concatenate([run.records.costs(label, seed, texts) for seed in seeds])
    return method_scores(label, cells, costs, row["selected_by"])


def _cell(
    run: Run,
    row: dict[str, Any],
    metric: tuple[MetricInfo, Sequence[MetricInfo]],
    texts: np.ndarray,
    interval: bool = True,
) -> MetricScores:
    """A row's scores by one of the run's metrics."""
    (info, metrics), label, seeds = metric, row["label"], row["seeds"]
    if info.grouped:
        groups = [run.groups.get((label, seed, info.label), []) for seed in seeds]
        # A run stopped during its group metrics has them for some seeds only; these are ignored.
        whole = all((label, seed, info.label) in run.groups for seed in seeds)
        by_seed = [[value for group in of_seed for value in group] if whole else [] for of_seed in groups]
        return metric_scores(info, table_of(by_seed), interval)
    place = [other for other in metrics if not other.grouped].index(info)
    values = np.stack([run.records.scores(label, seed, place, texts) for seed in seeds])
    return metric_scores(info, values, interval)
