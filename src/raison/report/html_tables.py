"""Results of methods as HTML: a standalone page, and a fragment for notebooks."""

import json
from collections.abc import Sequence

from raison.core.results import Comparison
from raison.report.markup import asset, document, escape
from raison.report.tables import Cell, Results, caption, columns, rows_of, warnings

_MARKS = {1: "<strong>{}</strong>", 2: "<u>{}</u>"}


def results_page(results: Results) -> str:
    """A standalone page of a table, without any link to the network."""
    title = f"Comparison on {results.data}" if isinstance(results, Comparison) else "Scores"
    body = f"<h1>{escape(title)}</h1>\n{_article(results)}"
    return document(title, body, ("explanation.css", "page.css"))


def results_fragment(results: Results) -> str:
    """A table for a notebook: styles reach only into it, light or dark as the notebook is."""
    return f"<style>\n{asset('explanation.css')}{asset('fragment.css')}</style>\n{_article(results)}"


def _article(results: Results) -> str:
    return f'<article class="raison">\n{scores_table(results)}\n{settings_list(results)}</article>'


def scores_table(results: Results) -> str:
    """Methods x metrics in a box that scrolls by itself, with the caption below."""
    shown = columns(results)
    head = [f"{escape(column.name)} {_arrow(column.arrow)}".strip() for column in shown]
    body = [
        [breakable(row.method), *(_cell(column.cells[number]) for column in shown)]
        for number, row in enumerate(rows_of(results))
    ]
    notes = "Best in bold, second underlined."
    if any(cell.seeds for column in shown for cell in column.cells):
        notes += " The last line of a cell is the range of the single seeds' values."
    told = "".join(f'\n<p class="warning">{escape(line)}</p>' for line in warnings(results))
    return f'{grid("Scores", ["method", *head], body)}\n<p class="caption">{escape(caption(results))} {notes}</p>{told}'


def grid(label: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table from HTML cells, the first of each row its heading, in a box that scrolls by itself."""
    top = "".join(f'<th scope="col">{name}</th>' for name in head)
    body = "".join(f'<tr><th scope="row">{first}</th>{"".join(map(_td, cells))}</tr>\n' for first, *cells in rows)
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label)}"><table class="results">\n'
        f"<thead><tr>{top}</tr></thead>\n<tbody>\n{body}</tbody></table></div>"
    )


def breakable(label: str) -> str:
    """A label that a narrow screen may break where a reader would."""
    return escape(label).replace("_", "_<wbr>").replace("(", "(<wbr>")


def minus(number: str) -> str:
    """A number's text for HTML with true minus signs."""
    return escape(number).replace("-", "\N{MINUS SIGN}")


def _td(cell: str) -> str:
    """A cell; one that sets its own attributes comes as a whole element."""
    return cell if cell.startswith("<td") else f"<td>{cell}</td>"


def _cell(cell: Cell) -> str:
    mean = _MARKS.get(cell.rank, "{}").format(minus(cell.marked))
    below = "".join(f"<small>{minus(line)}</small>" for line in (cell.interval, cell.seeds) if line)
    return f"<td>{mean}{below}</td>"


def _arrow(arrow: str) -> str:
    meaning = {"↑": "higher is better", "↓": "lower is better"}.get(arrow)
    return f'<span role="img" aria-label="{meaning}" title="{meaning}">{arrow}</span>' if meaning else ""


def settings_list(results: Results) -> str:
    """The settings behind a comparison, folded; nothing for bare scores."""
    if not isinstance(results, Comparison) or not results.settings:
        return ""
    items = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(json.dumps(value, ensure_ascii=False, default=str))}</dd>\n"
        for name, value in results.settings.items()
    )
    return f"<details><summary>Settings</summary>\n<dl>\n{items}</dl></details>\n"
