"""The report of a study of trainings: metrics, accuracy, settings, gains, costs, losses."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from raison.core.results.scores import MetricScores
from raison.numerics.statistics.gains import Gain
from raison.report.figures.data import Curve, Lines, Spot
from raison.report.pages.examples import asked_in
from raison.report.pages.examples_page import write_examples
from raison.report.style import phrases
from raison.report.style.colours import SERIES, level, peak
from raison.report.style.phrases import interval
from raison.report.tables.records import (
    ARROWS,
    NOTHING_THERE,
    Cell,
    Document,
    Plots,
    Section,
    Table,
    ranked,
)
from raison.runs.summary import MetricInfo
from raison.studies.claims import claims_section
from raison.studies.kinds.trainings.coefficients import coefficients
from raison.studies.kinds.trainings.examples import examples_in
from raison.studies.kinds.trainings.gains import GainTable, mixed, transferred, value_text, ways
from raison.studies.kinds.trainings.records import MODELS, PLAIN, TaskHead, TrainingHead, TrainingRecord, TrainingRuns
from raison.studies.kinds.trainings.tables import (
    ACCURACY,
    EXPLAINING,
    TRAINING,
    ColumnKey,
    against_plain,
    deviation,
    info_of,
    places,
    records_of,
    rows,
    scores,
)

_READING = (
    "Mean over seeds and texts with its 95 % interval: over texts, each averaged over the seeds; for metrics of "
    "groups of texts, over seeds and groups. sd: standard deviation over seeds. Best in bold, second underlined."
)
_SHADES = (
    "Red is better, blue is worse; colours saturate at 100 %. Relative to values near zero, gains become huge: "
    "compare them with the values themselves."
)
_RATES = ("learning_rate", "decay")


_LOSSES = "Mean loss of each epoch of training, mean over seeds; the band is from the lowest to the highest seed."
_SECONDS = "Seconds of trainings that differ in the number of texts; the band is from the fastest to the slowest seed."


_MOST = 2 * len(SERIES)
"""Maximum number of lines in one figure; more would overlap."""


def sections(results: TrainingRuns, target: Path | None = None) -> Document:
    """The study; a page of examples is written into the folder `target`, if explanations are stored with the records.

    Claims come last because there are many, one per task and claim.
    """
    header, links = results.header, _examples(results, target)
    return Document(
        sections=(
            Section("Criteria", tuple(metric_tables(results))),
            Section("Accuracy", (accuracy_table(results),)),
            Section("Gains", tuple(gain_tables(results))),
            Section("Learning rates", tuple(rate_tables(results)), in_terminal=False),
            Section("On data of other tasks", tuple(metric_tables(results, transfers=True)), in_terminal=False),
            Section("Costs", tuple(cost_tables(results)), in_terminal=False),
            claims_section(results),
            Section("Coefficients", tuple(coefficients(results)), in_terminal=False),
            Section("Losses", (Plots(tuple(loss_figures(results)), _LOSSES),)),
            Section("Time and texts", (Plots(tuple(seconds_figures(results)), _SECONDS),)),
        ),
        warnings=tuple(_lacking(results, target, links)),
        facts={
            "Tasks": "; ".join(_task(task) for task in header.tasks),
            "Seeds": ", ".join(map(str, header.seeds)),
        },
        links=links,
    )


def _examples(results: TrainingRuns, target: Path | None) -> dict[str, dict[str, str]]:
    """Links to the page of examples, which is written."""
    asked = asked_in(results.file)
    shown = [] if asked is None or target is None else list(examples_in(results, asked))
    if asked is None or target is None or not shown:
        return {}
    return write_examples(shown, target, results.title, f"{results.title}, digest {results.digest}.", asked.top)


def _lacking(results: TrainingRuns, target: Path | None, links: Mapping[str, object]) -> Iterator[str]:
    """A warning if examples were requested, and their explanations are not in the folder."""
    if "examples" in results.file and target is not None and results.records and not links:
        yield f"records only: the page of examples needs the folder {MODELS}, with the explanations."


def _task(task: TaskHead) -> str:
    parts = [f"{part.rows} of {part.name}" for part in (task.data.train, task.data.dev, task.data.test) if part]
    return f"{task.name} ({task.base}; {', '.join(parts)})"


def metric_tables(study: TrainingRuns, transfers: bool = False) -> list[Table]:
    """A table for each metric: post-hoc methods and trainings on every task, or (`transfers`) on other tasks' data."""
    columns = places(study, transfers)
    if not columns:
        return []
    return [_metric_table(study, info, columns) for info in study.header.metrics]


def accuracy_table(study: TrainingRuns) -> Table:
    """Accuracy of plain and trained models in per cent, with the difference from the plain ones (IvRA, table 5)."""
    columns = places(study)
    shown = [row.name for row in rows(study, PLAIN, "training")]
    return Table(
        "Accuracy ↑ (%)",
        ("model", *(place.title for place in columns)),
        tuple((row, tuple(_accuracy(study, row, place) for place in columns)) for row in shown),
        "Share of test texts whose label (for answers: both ends) is predicted, mean over seeds. Below: the difference "
        "from the plain models of the same seeds, with its 95 % interval over texts, in points; sd over seeds.",
    )


def cost_tables(study: TrainingRuns) -> list[Table]:
    """Seconds of training, and seconds and passes of explaining a text (IvRA, figures 9 and 10)."""
    columns = places(study)
    trained = [row.name for row in rows(study, PLAIN, "training")]
    explained = [row.name for row in rows(study, "posthoc", "training")]
    head = tuple(place.title for place in columns)
    return [
        Table(
            "Seconds of a training ↓",
            ("model", *head),
            tuple((row, tuple(_seconds(scores(study, row, place, TRAINING)) for place in columns)) for row in trained),
            "Wall-clock time on the machine that ran the study, mean over seeds; other work may have run there too.",
        ),
        Table(
            "Explaining a text ↓",
            ("explained by", *head),
            tuple((row, tuple(_explaining(study, row, place) for place in columns)) for row in explained),
            "Seconds per text, and forward and backward passes. Post-hoc methods share predictions: their seconds "
            "exclude texts that another method had already evaluated.",
        ),
    ]


def rate_tables(study: TrainingRuns) -> list[Table]:
    """Learning rates and decays: each criterion's metric for the models trained for it alone (IvRA, table 7)."""
    tables = []
    gains = study.header.gains
    for name, group in ways(study, "criteria", *_RATES).items():
        table = {(*(row.settings.get(key) for key in _RATES), *row.criteria): row for row in group}
        rates = list(dict.fromkeys(key[:2] for key in table))
        criteria = [c for c in gains if any((*rate, c) in table for rate in rates)]
        if len(rates) < 2 or not criteria:
            continue
        infos = {c: info_of(study, gains[c]) for c in criteria}
        head = tuple(f"{c}: {info.label} {ARROWS[info.higher_is_better]}" for c, info in infos.items())
        for place in places(study):
            cells = [[_scores(study, table.get((*rate, c)), place, gains[c]) for c in criteria] for rate in rates]
            grid = _ranked(cells, list(infos.values()))
            tables.append(
                Table(
                    ", ".join(part for part in ("Learning rate and decay", name, place.title) if part),
                    ("learning rate, decay", *head),
                    tuple((", ".join(map(value_text, rate)), cells) for rate, cells in zip(rates, grid, strict=True)),
                    "Each column shows the models trained for that criterion alone. " + _READING,
                )
            )
    return tables


def gain_tables(study: TrainingRuns) -> list[Table]:
    """Average relative gains: mixed against single criteria (IvRA, figure 5), and between data sets (figure 8)."""
    tables = [
        _gain_table(
            table,
            ", ".join(part for part in ("Average relative gain (%)", table.name) if part),
            "Rows: what is measured. Columns: models. (value - value of the model trained for this criterion alone) / "
            "|that value|, with reversed sign if lower is better, mean over tasks and seeds with its 95 % interval. "
            + _SHADES,
        )
        for table in mixed(study)
    ]
    return tables + [
        _gain_table(
            table,
            f"Relative gain (%) of training on the data itself: {table.name}",
            "Columns: models trained on the test's own task, compared with the same models trained on the other one; "
            "with reversed sign if lower is better, mean over seeds with its 95 % interval. " + _SHADES,
        )
        for table in transferred(study)
    ]


def _metric_table(study: TrainingRuns, info: MetricInfo, columns: Sequence[ColumnKey]) -> Table:
    shown = [row.name for row in rows(study, "posthoc", "training", "control")]
    table = [[scores(study, row, place, info.label) for place in columns] for row in shown]
    kept = [(row, cells_of_row) for row, cells_of_row in zip(shown, table, strict=True) if any(cells_of_row)]
    grid = _ranked([cells_of_row for _, cells_of_row in kept], [info] * len(columns))
    return Table(
        f"{info.label} {ARROWS[info.higher_is_better]}".strip(),
        ("explained by", *(place.title for place in columns)),
        tuple((row, cells) for (row, _), cells in zip(kept, grid, strict=True)),
        _READING,
    )


def _ranked(table: Sequence[Sequence[MetricScores | None]], infos: Sequence[MetricInfo]) -> list[tuple[Cell, ...]]:
    """Cells with the best and the second best of each column marked."""
    columns = []
    for number, info in enumerate(infos):
        cells = [line[number] for line in table]
        digits = max(3, phrases.decimals(peak(one.summary.mean for one in cells if one)))
        means = [one.summary.mean if one else math.nan for one in cells]
        columns.append(ranked([_cell(one, digits) for one in cells], means, info.higher_is_better))
    return [tuple(column[number] for column in columns) for number in range(len(table))]


def _cell(scored: MetricScores | None, digits: int, scale: float = 1) -> Cell:
    if scored is None:
        return NOTHING_THERE
    summary, spread = scored.summary, deviation(scored)
    return Cell(
        phrases.number(scale * summary.mean, digits),
        interval(scale * summary.low, scale * summary.high, digits),
        seeds="" if math.isnan(spread) else f"sd {phrases.number(scale * spread, digits)}",
    )


def _accuracy(study: TrainingRuns, row: str, place: ColumnKey) -> Cell:
    cell = _cell(scores(study, row, place, ACCURACY), 1, 100)
    if row == PLAIN or cell.mean == "–":
        return cell
    gap = against_plain(study, row, place)
    change = f"{phrases.signed(100 * gap.mean, 1)} {interval(100 * gap.low, 100 * gap.high, 1)}".strip()
    return replace(cell, interval=change if gap.count else "")


def _seconds(scored: MetricScores | None) -> Cell:
    return NOTHING_THERE if scored is None else Cell(phrases.seconds(scored.summary.mean))


def _explaining(study: TrainingRuns, row: str, place: ColumnKey) -> Cell:
    scored = scores(study, row, place, EXPLAINING)
    records = records_of(study, row, place)
    if scored is None or not records:
        return NOTHING_THERE
    taken = records[0].explaining
    forward, backward = (sum(values) / max(1, len(values)) for values in (taken.evaluations, taken.gradients))
    passes = f"{forward:,.4g} forward" + (f", {backward:,.4g} backward" if backward else "")
    return Cell(phrases.seconds(scored.summary.mean), passes)


def _scores(study: TrainingRuns, row: TrainingHead | None, place: ColumnKey, metric: str) -> MetricScores | None:
    return None if row is None else scores(study, row.name, place, metric)


def _gain_table(table: GainTable, title: str, caption: str) -> Table:
    # One huge gain must not make the colours of all others vanish.
    largest = min(1.0, peak(gain.mean for line in table.gains for gain in line))
    shades = tuple(
        tuple(level(gain.mean, largest) if gain.count else math.nan for gain in line) for line in table.gains
    )
    return Table(
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
        return NOTHING_THERE
    return Cell(phrases.signed(100 * gain.mean, 1), interval(100 * gain.low, 100 * gain.high, 1))


def loss_figures(study: TrainingRuns) -> Iterator[Lines]:
    """For each task and loss: its mean in every epoch, a line for each training that has it."""
    for number, place in enumerate(places(study)):
        records = {row.name: records_of(study, row.name, place) for row in rows(study, "training")}
        losses = dict.fromkeys(loss for of_row in records.values() for one in of_row for loss in _losses(one))
        for count, loss in enumerate(losses):
            curves = [
                Curve(name, row_number, _epochs([_losses(one).get(loss, ()) for one in of_row]))
                for row_number, (name, of_row) in enumerate(records.items())
            ]
            title = f"{place.title}: loss {loss} ↓"
            yield from _figures(f"l{number}n{count}", title, "epoch", [curve for curve in curves if curve.spots])


def seconds_figures(study: TrainingRuns) -> Iterator[Lines]:
    """For each task: seconds of trainings that differ in the number of texts; none if all use the same number."""
    for number, place in enumerate(places(study)):
        curves: list[Curve] = []
        for name, group in ways(study, "texts").items():
            spots = [one for row in group for one in records_of(study, row.name, place)]
            if len({one.texts for one in spots}) > 1:
                curves.append(Curve(name or "training", len(curves), _durations(spots)))
        title = f"{place.title}: seconds of a training ↓"
        for lines in _figures(f"t{number}", title, "training texts", curves):
            counts = sorted({spots.x for curve in lines.curves for spots in curve.spots})
            yield replace(lines, ticks={count: f"{count:,.10g}" for count in counts}, log_x=True, log_y=True)


def _losses(record: TrainingRecord) -> Mapping[str, Sequence[float | None]]:
    return record.history.get("losses", {})


def _epochs(seeds: Sequence[Sequence[float | None]]) -> tuple[Spot, ...]:
    count = max(map(len, seeds), default=0)
    columns = [[values[epoch] for values in seeds if epoch < len(values)] for epoch in range(count)]
    return tuple(_point(epoch, column) for epoch, column in enumerate(columns, 1) if _known(column))


def _durations(records: Sequence[TrainingRecord]) -> tuple[Spot, ...]:
    counts = sorted({record.texts for record in records})
    return tuple(_point(count, [one.training_seconds for one in records if one.texts == count]) for count in counts)


def _point(x: float, values: Sequence[float | None]) -> Spot:
    known = _known(values)
    return Spot(x, min(known), sum(known) / len(known), max(known))


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None and math.isfinite(value)]


def _figures(name: str, title: str, across: str, curves: Sequence[Curve]) -> Iterator[Lines]:
    for start in range(0, len(curves), _MOST):
        shown = tuple(curves[start : start + _MOST])
        yield Lines(f"{name}p{start}", title, f"{title} over {across}", shown, across)
