"""A run's records as a comparison of methods."""

from collections.abc import Sequence
from typing import Any

from raison.core.errors import DataError
from raison.core.results import Comparison, MetricScores, Scores
from raison.runs.run import Run
from raison.runs.summary import MetricInfo, method_scores, metric_scores


def comparison(run: Run) -> Comparison:
    """Methods side by side on the texts that all of them have been judged on.

    Raises DataError where there is no such text yet.
    """
    texts = finished_texts(run)
    if not texts:
        raise DataError(f"{run.folder} has no text yet that every method has explained: let the run finish first.")
    metrics = [MetricInfo(**metric) for metric in run.header["metrics"]]
    rows = [_scores(run, row, metrics, texts) for row in run.header["rows"]]
    seeds = sorted({seed for row in run.header["rows"] for seed in row["seeds"]})
    settings = {**run.header["settings"], "seeds": seeds}
    return Comparison(
        rows=tuple(rows),
        model=run.header["model"],
        data=run.header["data"],
        texts=len(texts),
        unit=settings["unit"],
        of=settings["of"],
        seed=settings["seed"],
        settings=settings,
    )


def finished_texts(run: Run) -> list[int]:
    """The numbers of the texts that have a record of every row and seed."""
    return [
        text
        for text in range(run.header["texts"])
        if all((row["label"], seed, text) in run.records for row in run.header["rows"] for seed in row["seeds"])
    ]


def _scores(run: Run, row: dict[str, Any], metrics: Sequence[MetricInfo], texts: Sequence[int]) -> Scores:
    label, seeds = row["label"], row["seeds"]
    of_texts = [metric for metric in metrics if not metric.grouped]
    found: list[MetricScores] = []
    for metric in metrics:
        if metric.grouped:
            groups = [run.groups.get((label, seed, metric.label), []) for seed in seeds]
            # A run that was stopped among its group metrics has them for some seeds only: better none than a part.
            whole = all((label, seed, metric.label) in run.groups for seed in seeds)
            values = [[value for group in of_seed for value in group] if whole else [] for of_seed in groups]
        else:
            place = of_texts.index(metric)
            values = [[run.records[label, seed, text].scores[place] for text in texts] for seed in seeds]
        found.append(metric_scores(metric, values))
    costs = [run.records[label, seed, text].costs for seed in seeds for text in texts]
    return method_scores(label, found, costs, row["selected_by"])
