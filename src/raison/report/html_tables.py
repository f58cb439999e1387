"""Results of methods as HTML: a standalone page, and a fragment for notebooks."""

import json

from raison.core.results import Comparison
from raison.report.markup import asset, document, escape
from raison.report.tables import Cell, Results, caption, columns, rows_of

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
    shown = columns(results)
    head = "".join(f'<th scope="col">{escape(column.name)} {_arrow(column.arrow)}</th>' for column in shown)
    body = "".join(
        f'<tr><th scope="row">{escape(row.method)}</th>'
        f"{''.join(_cell(column.cells[number]) for column in shown)}</tr>\n"
        for number, row in enumerate(rows_of(results))
    )
    table = (
        f'<table class="results">\n<thead><tr><th scope="col">method</th>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody></table>"
    )
    notes = f'<p class="caption">{escape(caption(results))} Best in bold, second underlined.</p>'
    scroll = f'<div class="scroll" tabindex="0" role="region" aria-label="Scores">{table}</div>'
    return f'<article class="raison">\n{scroll}\n{notes}\n{_settings(results)}</article>'


def _cell(cell: Cell) -> str:
    mean = _MARKS.get(cell.rank, "{}").format(_minus(cell.mean))
    return f"<td>{mean}{f'<small>{_minus(cell.interval)}</small>' if cell.interval else ''}</td>"


def _minus(number: str) -> str:
    return escape(number).replace("-", "\N{MINUS SIGN}")


def _arrow(arrow: str) -> str:
    meaning = {"↑": "higher is better", "↓": "lower is better"}.get(arrow)
    return f'<span role="img" aria-label="{meaning}" title="{meaning}">{arrow}</span>' if meaning else ""


def _settings(results: Results) -> str:
    if not isinstance(results, Comparison) or not results.settings:
        return ""
    items = "".join(
        f"<dt>{escape(name)}</dt><dd>{escape(json.dumps(value, ensure_ascii=False, default=str))}</dd>\n"
        for name, value in results.settings.items()
    )
    return f"<details><summary>Settings</summary>\n<dl>\n{items}</dl></details>\n"
