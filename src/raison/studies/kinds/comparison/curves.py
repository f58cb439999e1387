"""The mean curve of each method over the texts, for metrics whose records hold curves."""

from collections.abc import Iterator

import numpy as np

from raison.core.results.scores import Summary
from raison.numerics.measures.curves import SHARES
from raison.numerics.statistics.bootstrap import mean_interval
from raison.report.figures.data import Curve, Lines, Spot, spot
from raison.report.tables.records import ARROWS
from raison.runs.headers import RowHead
from raison.runs.run import Run
from raison.runs.table import finished_texts

_TICKS = {float(percent): str(percent) for percent in range(0, 101, 20)}


def curves(run: Run, number: int) -> Iterator[Lines]:
    """A figure for each metric with curves; rows with selected maps are left out. `number` is the run's."""
    texts = finished_texts(run)
    rows = [row for row in run.header.rows if row.selected_by is None]
    for place, metric in enumerate(run.header.single):
        if metric.pool != "curve" or not len(texts):
            continue
        drawn = (Curve(row.label, look, _spots(run, row, place, texts)) for look, row in enumerate(rows))
        title = f"{metric.label.partition('(')[0]} {ARROWS[metric.higher_is_better]}"
        label = f"{metric.label} by share of units"
        yield Lines(f"c{number}m{place}", title, label, tuple(drawn), "% of units", ticks=_TICKS)


def _spots(run: Run, row: RowHead, place: int, texts: np.ndarray) -> tuple[Spot, ...]:
    """Means over texts with their 95 % intervals; each text's value is the mean over the seeds."""
    values = np.mean([run.records.scores(*key, place, texts)[:, 1:] for key in row.keys], axis=0)
    return tuple(
        spot(100 * share, Summary(*mean_interval(column.tolist()), len(texts)))
        for share, column in zip(SHARES, values.T, strict=True)
    )
