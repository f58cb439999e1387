"""Results of methods as a grid of cells, and that grid as Markdown, LaTeX and CSV."""

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from raison.core.notes import EACH_FROM
from raison.core.results import Comparison, MetricScores, Scores, Summary
from raison.report.style import phrases
from raison.report.style.colours import peak
from raison.report.tables.records import ARROWS, NOTHING_THERE, Cell, interval, ranks

Results = Scores | Comparison | Sequence[Scores]

_FIELDS = ("method", "metric", "higher_is_better", "mean", "low", "high", "count")
_LATEX = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "[": "{[}", "–": "--", "†": r"\dag{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}  # fmt: skip


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
    """The same for each label alone, where several were explained."""
    return {**results.by_target} if isinstance(results, Scores | Comparison) else {}


def columns(results: Results) -> tuple[ScoresColumn, ...]:
    """Every metric in order of first appearance, then what the methods cost per text."""
    rows = rows_of(results)
    most = _most(rows)
    directions = {scores.metric: scores.higher_is_better for row in rows for scores in row.metrics}
    listed = [_metric_column(rows, name, higher, most) for name, higher in directions.items()]
    listed.append(_cost_column("evaluations", [row.evaluations for row in rows]))
    if any(row.gradients.mean for row in rows):
        listed.append(_cost_column("gradients", [row.gradients for row in rows]))
    return (*listed, _time_column([row.seconds for row in rows]))


def warnings(results: Results) -> list[str]:
    """Cautions about the numbers, as sentences."""
    told = (results,) if isinstance(results, Scores | Comparison) else results
    return [f"Warning: {caution}." for one in told for caution in one.cautions]


def _below(results: Results, note: str) -> str:
    return " ".join(part for part in (caption(results), *warnings(results), note) if part)


def caption(results: Results) -> str:
    """The meaning and the source of the numbers."""
    most = _most(rows_of(results))
    reading = (
        f"Mean with its 95 % interval, n = {most:,} unless a cell says otherwise; costs are per text: evaluations are "
        "forward passes, the prediction's own included, gradients are backward passes. Time leaves out what another "
        "method of the same run had computed before; evaluations do not."
    )
    if any(row.selected_by == scores.metric for row in rows_of(results) for scores in row.metrics):
        reading += " † The metric judges maps that it chose itself."
    if not isinstance(results, Comparison):
        return reading
    return (
        f"{results.model} on {results.data}, {_amount(results)}, {_quantity(results)} explained "
        f"{results.unit} by {results.unit}, {_seeds(results)}. {reading}"
    )


def _amount(comparison: Comparison) -> str:
    """How many texts were explained, or labels of texts."""
    threshold = comparison.settings.get(EACH_FROM)
    if threshold is None:
        return phrases.count(comparison.texts, "text")
    return f"{phrases.count(comparison.texts, 'label')} of texts from {100 * threshold:g} % on"


def _quantity(comparison: Comparison) -> str:
    """What is explained, in plain words: a model's one number is its score."""
    number = comparison.settings.get("outputs") == "number"
    return "score" if number else phrases.quantity(comparison.of)


def _seeds(comparison: Comparison) -> str:
    seeds = comparison.settings.get("seeds", [comparison.seed])
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


def markdown(results: Results, note: str = "") -> str:
    """A Markdown table with a caption below, `note` at its end; best in bold, second best underlined."""
    shown = columns(results)
    lines = [
        ["method", *(f"{escape_markdown(column.name)} {column.arrow}".strip() for column in shown)],
        ["---", *("---:" for _ in shown)],
        *_body(results, shown, escape_markdown, ("{}", "**{}**", "<u>{}</u>")),
    ]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return f"{table}\n\n{escape_markdown(_below(results, note))}\n"


def latex(results: Results, note: str = "") -> str:
    """A LaTeX table that needs the package booktabs; `markdown` with the same marks."""
    arrows = {"↑": r" $\uparrow$", "↓": r" $\downarrow$", "": ""}
    shown = columns(results)
    head = ["method", *(escape_latex(column.name) + arrows[column.arrow] for column in shown)]
    body = _body(results, shown, escape_latex, ("{}", r"\textbf{{{}}}", r"\underline{{{}}}"))
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\begin{{tabular}}{{l{'r' * len(shown)}}}",
            r"\toprule",
            " & ".join(head) + r" \\",
            r"\midrule",
            *(" & ".join([line[0], *map(_latex_number, line[1:])]) + r" \\" for line in body),
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{escape_latex(_below(results, note))}}}",
            r"\end{table}",
            "",
        ]
    )


def csv_text(results: Results) -> str:
    """One line per method and metric, unrounded; an undefined number is left empty."""
    out = io.StringIO()
    writer = csv.DictWriter(out, _FIELDS, lineterminator="\n")
    writer.writeheader()
    for row in rows_of(results):
        for record in row.records():
            writer.writerow({name: _defined(value) for name, value in record.items()})
    return out.getvalue()


def _body(
    results: Results, shown: Sequence[ScoresColumn], escaped: Callable[[str], str], mark: tuple[str, str, str]
) -> list[list[str]]:
    """Lines of cells; `mark` holds how a cell reads without rank, as the best, as the second."""
    lines = []
    for number, row in enumerate(rows_of(results)):
        cells = [column.cells[number] for column in shown]
        lines.append(
            [escaped(row.method), *(f"{mark[cell.rank].format(cell.marked)} {cell.interval}".strip() for cell in cells)]
        )
    return lines


def _metric_column(rows: Sequence[Scores], metric: str, higher: bool | None, most: int) -> ScoresColumn:
    scores_of_rows = [next((scores for scores in row.metrics if scores.metric == metric), None) for row in rows]
    places = max(3, phrases.decimals(peak(scores.summary.mean for scores in scores_of_rows if scores)))
    order = ranks([scores.summary.mean if scores else math.nan for scores in scores_of_rows], higher)
    is_chooser = [row.selected_by == metric for row in rows]
    cells = [_cell(scores, places, most) for scores in scores_of_rows]
    marked = tuple(replace(cell, rank=rank, own=o) for cell, rank, o in zip(cells, order, is_chooser, strict=True))
    return ScoresColumn(metric, ARROWS[higher], marked)


def _cell(scores: MetricScores | None, places: int, most: int) -> Cell:
    if scores is None:
        return NOTHING_THERE
    summary = scores.summary
    told = interval(summary.low, summary.high, places)
    if summary.count != most:
        told = f"{told} n={summary.count:,}".strip()
    seeds = sorted(scores.seed_means)
    spread = f"{phrases.number(seeds[0], places)} to {phrases.number(seeds[-1], places)}" if seeds else ""
    return Cell(phrases.number(summary.mean, places), told, seeds=spread)


def _cost_column(name: str, summaries: Sequence[Summary]) -> ScoresColumn:
    return ScoresColumn(name, "", tuple(Cell(phrases.number(s.mean, 0)) for s in summaries))


def _time_column(summaries: Sequence[Summary]) -> ScoresColumn:
    return ScoresColumn("time", "", tuple(Cell(phrases.seconds(s.mean)) for s in summaries))


def _most(rows: Sequence[Scores]) -> int:
    return max((scores.summary.count for row in rows for scores in row.metrics), default=0)


def _defined(value: object) -> object:
    return "" if isinstance(value, float) and not math.isfinite(value) else value


_UNPRINTABLE = dict.fromkeys([*range(0x20), *range(0x7F, 0xA0), *range(0xD800, 0xE000)], "\ufffd")


def one_line(text: str) -> str:
    """Text with one space for all white space; control characters and halves of characters are replaced."""
    return " ".join(text.split()).translate(_UNPRINTABLE)


def comments(lines: Sequence[str]) -> str:
    """Lines that LaTeX leaves out."""
    return "".join(f"% {one_line(line)}\n" for line in lines)


def escape_markdown(text: str) -> str:
    """One line of text as Markdown that shows it."""
    flat = one_line(text).replace("&", "&amp;").replace("<", "&lt;")
    plain = "".join(f"\\{character}" if character in "\\|*_`" else character for character in flat)
    # A link would need both brackets side by side.
    return plain.replace("](", "]\\(")


def escape_latex(text: str) -> str:
    """One line of text as LaTeX that prints it."""
    return "".join(_LATEX.get(character, character) for character in one_line(text))


def _latex_number(text: str) -> str:
    return text.replace("-", "$-$").replace("–", "--")
