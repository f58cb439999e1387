"""A run's records as a comparison of methods."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from raison.core.errors import UnfinishedError
from raison.core.note_names import EACH_FROM
from raison.core.results.scores import Comparison, MetricScores, Scores
from raison.runs.headers import RowHead
from raison.runs.run import OUTPUTS, Run
from raison.runs.summary import MetricInfo, method_scores, metric_scores, table_of


def comparison(run: Run) -> Comparison:
    """Methods side by side on the texts that all of them have results for, and the same for each of several labels.

    Raises UnfinishedError if there is no such text yet.
    """
    texts = finished_texts(run)
    if not len(texts):
        raise UnfinishedError(
            f"{run.folder} has no text yet that all methods have explained: finish the run first, with all its shares."
        )
    header = run.header
    whole = _table(run, header.metrics, texts)
    targets = run.records.targets(*header.keys[0], texts)
    several = header.outputs == "labels" or EACH_FROM in header.settings.raw
    if not several or len(set(targets)) < 2:
        return whole
    return replace(
        whole,
        by_target={
            name: _table(run, header.single, texts[[target == name for target in targets]])
            for name in dict.fromkeys(targets)
        },
    )


def _table(run: Run, metrics: Sequence[MetricInfo], texts: np.ndarray) -> Comparison:
    header = run.header
    settings = {**header.settings.raw, "seeds": sorted({seed for _, seed in header.keys})}
    if header.outputs:
        settings[OUTPUTS] = header.outputs
    return Comparison(
        rows=tuple(_scores(run, row, metrics, texts) for row in header.rows),
        model=header.model,
        data=header.data,
        texts=len(texts),
        unit=header.settings.unit,
        of=header.settings.of,
        seed=header.settings.seed,
        settings=settings,
        cautions=header.cautions,
    )


def scores_of(run: Run, row: str, metric: str, texts: np.ndarray) -> MetricScores | None:
    """One cell of `comparison`, without its interval; None if the run has no such row or metric."""
    rows = [known for known in run.header.rows if known.label == row]
    infos = [known for known in run.header.metrics if known.label == metric]
    return _cell(run, rows[0], infos[0], texts, interval=False) if rows and infos else None


def finished_texts(run: Run) -> np.ndarray:
    """The numbers of the texts that have a record of every row and seed."""
    done = np.logical_and.reduce([run.records.done(*key) for key in run.header.keys])
    return np.flatnonzero(done)


def _scores(run: Run, row: RowHead, metrics: Sequence[MetricInfo], texts: np.ndarray) -> Scores:
    cells = [_cell(run, row, info, texts) for info in metrics]
    costs = np.concatenate([run.records.costs(*key, texts) for key in row.keys])
    return method_scores(row.label, cells, costs, row.selected_by)


def _cell(run: Run, row: RowHead, info: MetricInfo, texts: np.ndarray, interval: bool = True) -> MetricScores:
    """A row's scores by one of the run's metrics."""
    if info.grouped:
        groups = [run.groups.get((*key, info.label)) for key in row.keys]
        # A run stopped during its group metrics has them for some seeds only; these are ignored.
        whole = None not in groups
        by_seed = [[value for group in of_seed or () for value in group] if whole else [] for of_seed in groups]
        return metric_scores(info, table_of(by_seed), interval)
    place = run.header.single.index(info)
    numbers = np.array(run.header.text_numbers)[texts] if run.header.text_numbers else None
    scores = np.stack([run.records.scores(*key, place, texts) for key in row.keys])
    return metric_scores(info, scores, interval, numbers)
