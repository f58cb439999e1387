"""Results of methods as HTML: a standalone page, and a fragment for notebooks."""

import json
from collections.abc import Sequence

from raison.core.results import Comparison
from raison.report.style.markup import NOTHING, Markup, asset, document, html, joined
from raison.report.tables.records import Cell
from raison.report.tables.results import Results, by_target, caption, columns, rows_of, warnings


def results_page(results: Results) -> str:
    """A standalone page of a table, without any link to the network."""
    title = f"Comparison on {results.data}" if isinstance(results, Comparison) else "Scores"
    return document(title, html("<h1>{}</h1>\n{}", title, _article(results)), ("explanation.css", "page.css"))


def results_fragment(results: Results) -> str:
    """A table for a notebook: styles reach only into it, light or dark as the notebook is."""
    return str(html("<style>\n{}{}</style>\n{}", asset("explanation.css"), asset("fragment.css"), _article(results)))


def _article(results: Results) -> Markup:
    each = joined(html("<h2>{}</h2>\n{}\n", name, _methods(own)) for name, own in by_target(results).items())
    return html('<article class="raison">\n{}\n{}{}</article>', scores_table(results), each, settings_list(results))


def _methods(results: Results) -> Markup:
    """Methods x metrics in a box that scrolls by itself."""
    shown = columns(results)
    head = [html("{} {}", column.name, _arrow(column.arrow)).strip() for column in shown]
    body = [
        [breakable(row.method), *(_cell(column.cells[number]) for column in shown)]
        for number, row in enumerate(rows_of(results))
    ]
    return grid("Scores", ["method", *head], body)


def scores_table(results: Results) -> Markup:
    """Methods x metrics with the caption below."""
    notes = html("Best in bold, second underlined.")
    if any(cell.seeds for column in columns(results) for cell in column.cells):
        notes += html(" The last line of a cell is the range of the single seeds' values.")
    return html(
        '{}\n<p class="caption">{} {}</p>{}',
        _methods(results),
        caption(results),
        notes,
        joined(html('\n<p class="warning">{}</p>', line) for line in warnings(results)),
    )


def grid(label: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    """A table from text or Markup, the first of each row its heading, in a box that scrolls by itself."""
    return html(
        '<div class="scroll" tabindex="0" role="region" aria-label="{}"><table class="results">\n'
        "<thead><tr>{}</tr></thead>\n<tbody>\n{}</tbody></table></div>",
        label,
        joined(html('<th scope="col">{}</th>', name) for name in head),
        joined(html('<tr><th scope="row">{}</th>{}</tr>\n', first, joined(map(_td, cells))) for first, *cells in rows),
    )


def breakable(label: str) -> Markup:
    """A label that a narrow screen may break where a reader would."""
    return html("{}", label).replace("_", html("_<wbr>")).replace("(", html("(<wbr>"))


def minus(number: str) -> str:
    """A number's text with true minus signs."""
    return number.replace("-", "\N{MINUS SIGN}")


def marked(mean: str, rank: int) -> str:
    """A mean, the best of its column (rank 1) in bold, the second underlined."""
    if rank == 1:
        return html("<strong>{}</strong>", mean)
    return html("<u>{}</u>", mean) if rank == 2 else mean


def _td(cell: str) -> Markup:
    """A cell; one that sets its own attributes comes as a whole element."""
    return cell if isinstance(cell, Markup) and cell.startswith(html("<td")) else html("<td>{}</td>", cell)


def _cell(cell: Cell) -> Markup:
    below = joined(html("<small>{}</small>", minus(line)) for line in (cell.interval, cell.seeds) if line)
    return html("<td>{}{}</td>", marked(minus(cell.marked), cell.rank), below)


def _arrow(arrow: str) -> Markup:
    meaning = {"↑": "higher is better", "↓": "lower is better"}.get(arrow)
    if meaning is None:
        return NOTHING
    return html('<span role="img" aria-label="{}" title="{}">{}</span>', meaning, meaning, arrow)


def settings_list(results: Results) -> Markup:
    """The settings behind a comparison, folded; nothing for bare scores."""
    if not isinstance(results, Comparison) or not results.settings:
        return NOTHING
    items = joined(
        html("<dt>{}</dt><dd>{}</dd>\n", name, json.dumps(value, ensure_ascii=False, default=str))
        for name, value in results.settings.items()
    )
    return html("<details><summary>Settings</summary>\n<dl>\n{}</dl></details>\n", items)
