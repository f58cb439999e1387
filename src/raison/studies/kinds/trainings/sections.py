"""The tables of a study of trainings, as a grid of cells: metrics, accuracy, settings, gains, costs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from raison.core.results import MetricScores
from raison.numerics.gains import Gain
from raison.report import phrases
from raison.report.colours import level, peak
from raison.report.tables import Cell
from raison.runs.summary import MetricInfo
from raison.studies.kinds.trainings.gains import GainTable, mixed, transferred
from raison.studies.kinds.trainings.groups import said, ways
from raison.studies.kinds.trainings.results import PLAIN, Trainings
from raison.studies.kinds.trainings.tables import (
    ACCURACY,
    EXPLAINING,
    TRAINING,
    Place,
    against_plain,
    deviation,
    metric_infos,
    places,
    rows,
    scores,
)

ARROWS = {True: "↑", False: "↓", None: ""}
_READING = (
    "Mean over seeds and texts with its 95 % interval: over texts, each averaged over the seeds; for metrics of groups "
    "of texts over seeds and groups. sd: standard deviation over seeds. Best in bold, second underlined."
)
_SHADES = (
    "Red is better, blue is worse; the colour is full from 100 % on. Values near zero make gains over them huge: read "
    "them beside the values themselves."
)
_RATES = ("learning_rate", "decay")


@dataclass(frozen=True, slots=True)
class Grid:
    """A table: the heading of its first column and of the others, named rows of cells, and what they are.

    `shades` are levels from -1 to 1 where a table is a heat map, NaN for a cell without one.
    """

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    caption: str
    shades: tuple[tuple[float, ...], ...] = ()


def metric_grids(study: Trainings, transfers: bool = False) -> list[Grid]:
    """A table for each metric: post-hoc methods and trainings on every task, or (`transfers`) on other tasks' data."""
    columns = places(study, transfers)
    if not columns:
        return []
    return [_metric_grid(study, info, columns) for info in metric_infos(study)]


def accuracy_grid(study: Trainings) -> Grid:
    """Accuracy of plain and trained models in per cent, with the difference from the plain ones (IvRA, table 5)."""
    columns = places(study)
    shown = [row["name"] for row in rows(study, PLAIN, "training")]
    return Grid(
        "Accuracy ↑ (%)",
        ("model", *(place.title for place in columns)),
        tuple((row, tuple(_accuracy(study, row, place) for place in columns)) for row in shown),
        "Share of test texts whose label (for answers: both ends) is predicted, mean over seeds. Below: the difference "
        "from the plain models of the same seeds, with its 95 % interval over texts, in points; sd over seeds.",
    )


def cost_grids(study: Trainings) -> list[Grid]:
    """Seconds of training, and seconds and passes of explaining a text (IvRA, figures 9 and 10)."""
    columns = places(study)
    trained = [row["name"] for row in rows(study, PLAIN, "training")]
    explained = [row["name"] for row in rows(study, "posthoc", "training")]
    head = tuple(place.title for place in columns)
    return [
        Grid(
            "Seconds of a training ↓",
            ("model", *head),
            tuple((row, tuple(_seconds(scores(study, row, place, TRAINING)) for place in columns)) for row in trained),
            "Wall clock on the machine that ran the study, mean over seeds; other work may have shared it.",
        ),
        Grid(
            "Explaining a text ↓",
            ("explained by", *head),
            tuple((row, tuple(_explaining(study, row, place) for place in columns)) for row in explained),
            "Seconds per text, and forward and backward passes. Post-hoc methods share predictions: their seconds "
            "leave out texts that another one had evaluated before.",
        ),
    ]


def rate_grids(study: Trainings) -> list[Grid]:
    """Learning rates and decays: each criterion's metric for the models trained for it alone (IvRA, table 7)."""
    found = []
    gains = study.header["gains"]
    for name, group in ways(study, "criteria", *_RATES).items():
        table = {(*(row["settings"].get(key) for key in _RATES), *row["criteria"]): row for row in group}
        rates = list(dict.fromkeys(key[:2] for key in table))
        criteria = [c for c in gains if any((*rate, c) in table for rate in rates)]
        if len(rates) < 2 or not criteria:
            continue
        for place in places(study):
            cells = [[_scores(study, table.get((*rate, c)), place, gains[c]) for c in criteria] for rate in rates]
            grid = _ranked(cells, [_info(study, gains[c]) for c in criteria])
            found.append(
                Grid(
                    ", ".join(part for part in ("Learning rate and decay", name, place.title) if part),
                    ("learning rate, decay", *(f"{c}: {gains[c]} {_arrow(study, gains[c])}" for c in criteria)),
                    tuple((", ".join(map(said, rate)), cells) for rate, cells in zip(rates, grid, strict=True)),
                    "Each column is of the models that were trained for its criterion alone. " + _READING,
                )
            )
    return found


def gain_grids(study: Trainings) -> list[Grid]:
    """Average relative gains: mixed against single criteria (IvRA, figure 5), and between data sets (figure 8)."""
    found = [
        _gain_grid(
            table,
            ", ".join(part for part in ("Average relative gain (%)", table.name) if part),
            "Rows: what is judged. Columns: models. (value - value of the model trained for this criterion alone) / "
            "|that value|, sign turned where lower is better, mean over tasks and seeds with its 95 % interval. "
            + _SHADES,
        )
        for table in mixed(study)
    ]
    return found + [
        _gain_grid(
            table,
            f"Relative gain (%) of training on the data itself: {table.name}",
            "Columns: models trained on the test's own task, against the same trained on the other one; sign turned "
            "where lower is better, mean over seeds with its 95 % interval. " + _SHADES,
        )
        for table in transferred(study)
    ]


def _metric_grid(study: Trainings, info: MetricInfo, columns: Sequence[Place]) -> Grid:
    shown = [row["name"] for row in rows(study, "posthoc", "training", "control")]
    table = [[scores(study, row, place, info.label) for place in columns] for row in shown]
    kept = [(row, found) for row, found in zip(shown, table, strict=True) if any(found)]
    grid = _ranked([found for _, found in kept], [info] * len(columns))
    return Grid(
        f"{info.label} {ARROWS[info.higher_is_better]}".strip(),
        ("explained by", *(place.title for place in columns)),
        tuple((row, cells) for (row, _), cells in zip(kept, grid, strict=True)),
        _READING,
    )


def _ranked(table: Sequence[Sequence[MetricScores | None]], infos: Sequence[MetricInfo]) -> list[tuple[Cell, ...]]:
    """Cells with the best and the second best of each column marked."""
    columns = []
    for number, info in enumerate(infos):
        found = [line[number] for line in table]
        digits = max(3, phrases.decimals(peak(one.summary.mean for one in found if one)))
        means = [one.summary.mean if one else math.nan for one in found]
        ranks = _ranks(means, info.higher_is_better)
        columns.append([replace(_cell(one, digits), rank=rank) for one, rank in zip(found, ranks, strict=True)])
    return [tuple(column[number] for column in columns) for number in range(len(table))]


def _cell(found: MetricScores | None, digits: int, scale: float = 1) -> Cell:
    if found is None:
        return Cell("–")
    summary, spread = found.summary, deviation(found)
    return Cell(
        phrases.number(scale * summary.mean, digits),
        _interval(scale * summary.low, scale * summary.high, digits),
        seeds="" if math.isnan(spread) else f"sd {phrases.number(scale * spread, digits)}",
    )


def _interval(low: float, high: float, digits: int) -> str:
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"[{phrases.number(low, digits)}, {phrases.number(high, digits)}]"


def _ranks(means: Sequence[float], higher: bool | None) -> list[int]:
    """1 for the best, 2 for the second best of at least three different values."""
    distinct = sorted({mean for mean in means if math.isfinite(mean)}, reverse=bool(higher))
    if len(distinct) < 2 or higher is None:
        return [0] * len(means)
    order = {distinct[0]: 1} | ({distinct[1]: 2} if len(distinct) > 2 else {})
    return [order.get(mean, 0) for mean in means]


def _accuracy(study: Trainings, row: str, place: Place) -> Cell:
    cell = _cell(scores(study, row, place, ACCURACY), 1, 100)
    if row == PLAIN or cell.mean == "–":
        return cell
    gap = against_plain(study, row, place)
    change = f"{phrases.signed(100 * gap.mean, 1)} {_interval(100 * gap.low, 100 * gap.high, 1)}".strip()
    return replace(cell, interval=change if gap.count else "")


def _seconds(found: MetricScores | None) -> Cell:
    return Cell("–") if found is None else Cell(phrases.seconds(found.summary.mean))


def _explaining(study: Trainings, row: str, place: Place) -> Cell:
    found = scores(study, row, place, EXPLAINING)
    records = [record for key, record in study.records.items() if key[:3] == (place.task, place.test, row)]
    if found is None or not records:
        return Cell("–")
    taken = records[0].explaining
    forward, backward = (sum(values) / max(1, len(values)) for values in (taken.evaluations, taken.gradients))
    passes = f"{forward:,.4g} forward" + (f", {backward:,.4g} backward" if backward else "")
    return Cell(phrases.seconds(found.summary.mean), passes)


def _scores(study: Trainings, row: dict[str, Any] | None, place: Place, metric: str) -> MetricScores | None:
    return None if row is None else scores(study, row["name"], place, metric)


def _info(study: Trainings, metric: str) -> MetricInfo:
    return next(info for info in metric_infos(study) if info.label == metric)


def _arrow(study: Trainings, metric: str) -> str:
    return ARROWS[_info(study, metric).higher_is_better]


def _gain_grid(table: GainTable, title: str, caption: str) -> Grid:
    # One model that gains many times another's value must not take the colour from all others.
    largest = min(1.0, peak(gain.mean for line in table.gains for gain in line))
    shades = tuple(
        tuple(level(gain.mean, largest) if gain.count else math.nan for gain in line) for line in table.gains
    )
    return Grid(
        title,
        ("criterion", *table.columns),
        tuple(
            (f"{criterion}: {metric}", tuple(_gain_cell(gain) for gain in line))
            for criterion, metric, line in zip(table.criteria, table.metrics, table.gains, strict=True)
        ),
        caption,
        shades,
    )


def _gain_cell(gain: Gain) -> Cell:
    if not gain.count:
        return Cell("–")
    return Cell(phrases.signed(100 * gain.mean, 1), _interval(100 * gain.low, 100 * gain.high, 1))
