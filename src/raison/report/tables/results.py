"""Results of methods as a table of cells, and that table as Markdown, LaTeX and CSV."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from raison.core.note_names import EACH_FROM
from raison.core.results.scores import Comparison, MetricScores, Scores, Summary
from raison.report.style import phrases
from raison.report.style.colours import peak
from raison.report.tables.records import ARROWS, NOTHING_THERE, Cell, Table, ranked
from raison.report.tables.writers import escape_markdown, latex_table, markdown_table

Results = Scores | Comparison | Sequence[Scores]


@dataclass(frozen=True, slots=True)
class ScoresColumn:
    """One metric or cost, with a cell per method. `arrow` is empty where neither direction is better."""

    name: str
    arrow: str
    cells: tuple[Cell, ...]


def rows_of(results: Results) -> tuple[Scores, ...]:
    """The methods' scores."""
    if isinstance(results, Scores):
        return (results,)
    return results.rows if isinstance(results, Comparison) else tuple(results)


def by_target(results: Results) -> dict[str, Results]:
    """The same for each label separately, if several were explained."""
    return {**results.by_target} if isinstance(results, Scores | Comparison) else {}


def columns(results: Results) -> tuple[ScoresColumn, ...]:
    """Every metric in order of first appearance, then the methods' costs per text."""
    rows = rows_of(results)
    most = _most(rows)
    directions = {scores.metric: scores.higher_is_better for row in rows for scores in row.metrics}
    listed = [_metric_column(rows, name, higher, most) for name, higher in directions.items()]
    listed.append(_cost_column("evaluations", [row.evaluations for row in rows]))
    if any(row.gradients.mean for row in rows):
        listed.append(_cost_column("gradients", [row.gradients for row in rows]))
    return (*listed, ScoresColumn("time", "", tuple(Cell(phrases.seconds(row.seconds.mean)) for row in rows)))


def warnings(results: Results) -> list[str]:
    """Cautions about the numbers, as sentences."""
    parts = (results,) if isinstance(results, Scores | Comparison) else results
    return [f"Warning: {caution}." for one in parts for caution in one.cautions]


def caption(results: Results) -> str:
    """The meaning and the source of the numbers."""
    most = _most(rows_of(results))
    reading = (
        f"Mean with its 95 % interval, n = {most:,} unless a cell says otherwise; costs are per text: evaluations are "
        "forward passes, the prediction's own included, gradients are backward passes. Time excludes what another "
        "method of the same run had already computed; evaluations include it."
    )
    if any(row.selected_by == scores.metric for row in rows_of(results) for scores in row.metrics):
        reading += " † The metric evaluates maps that it selected itself."
    if not isinstance(results, Comparison):
        return reading
    return (
        f"{results.model} on {results.data}, {_amount(results)}, {_quantity(results)} explained "
        f"{results.unit} by {results.unit}, {_seeds(results)}. {reading}"
    )


def _amount(comparison: Comparison) -> str:
    """The number of explained texts, or of predictions in texts."""
    threshold = comparison.settings.get(EACH_FROM)
    if threshold is None:
        return phrases.count(comparison.texts, "text")
    least = f" from {100 * threshold:g} % on" if threshold else ""
    return f"{phrases.count(comparison.texts, 'prediction')} in texts{least}"


def _quantity(comparison: Comparison) -> str:
    """The explained quantity in plain words: a model's one number is its score."""
    number = comparison.settings.get("outputs") == "number"
    return "score" if number else phrases.quantity(comparison.of)


def _seeds(comparison: Comparison) -> str:
    seeds = comparison.settings.get("seeds", [comparison.seed])
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


def results_table(results: Results, note: str = "") -> Table:
    """Methods x metrics; `note` ends the caption."""
    shown = columns(results)
    cells = zip(*(column.cells for column in shown), strict=True)
    rows = tuple((row.method, row_cells) for row, row_cells in zip(rows_of(results), cells, strict=True))
    head = ("method", *(f"{column.name} {column.arrow}".strip() for column in shown))
    return Table("", head, rows, " ".join(part for part in (caption(results), *warnings(results), note) if part))


def markdown(results: Results, note: str = "") -> str:
    """A Markdown table with a caption below, `note` at its end."""
    table = _without_seeds(results_table(results, note))
    return f"{markdown_table(table)}\n\n{escape_markdown(table.caption)}\n"


def latex(results: Results, note: str = "") -> str:
    """A LaTeX table that needs the package booktabs."""
    return latex_table(_without_seeds(results_table(results, note)))


def csv_text(results: Results) -> str:
    """One line per method and metric, unrounded; an undefined number is left empty."""
    import pandas as pd

    frame = pd.DataFrame([record for row in rows_of(results) for record in row.records()])
    return frame.replace([math.inf, -math.inf], math.nan).to_csv(index=False, lineterminator="\n")


def _without_seeds(table: Table) -> Table:
    """The table without the ranges over seeds, as papers print it."""
    return replace(
        table, rows=tuple((name, tuple(replace(cell, seeds="") for cell in cells)) for name, cells in table.rows)
    )


def _metric_column(rows: Sequence[Scores], metric: str, higher: bool | None, most: int) -> ScoresColumn:
    scores_of_rows = [next((scores for scores in row.metrics if scores.metric == metric), None) for row in rows]
    means = [scores.summary.mean if scores else math.nan for scores in scores_of_rows]
    places = max(3, phrases.decimals(peak(means)))
    cells = [_cell(scores, places, most) for scores in scores_of_rows]
    cells = [replace(cell, own=row.selected_by == metric) for cell, row in zip(cells, rows, strict=True)]
    return ScoresColumn(metric, ARROWS[higher], tuple(ranked(cells, means, higher)))


def _cell(scores: MetricScores | None, places: int, most: int) -> Cell:
    if scores is None:
        return NOTHING_THERE
    summary = scores.summary
    detail = phrases.interval(summary.low, summary.high, places)
    if summary.count != most:
        detail = f"{detail} n={summary.count:,}".strip()
    seeds = sorted(scores.seed_means)
    spread = f"{phrases.number(seeds[0], places)} to {phrases.number(seeds[-1], places)}" if seeds else ""
    return Cell(phrases.number(summary.mean, places), detail, seeds=spread)


def _cost_column(name: str, summaries: Sequence[Summary]) -> ScoresColumn:
    return ScoresColumn(name, "", tuple(Cell(phrases.number(s.mean, 0)) for s in summaries))


def _most(rows: Sequence[Scores]) -> int:
    return max((scores.summary.count for row in rows for scores in row.metrics), default=0)
