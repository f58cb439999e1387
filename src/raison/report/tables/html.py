"""Results of methods as HTML: a standalone page, and a fragment for notebooks."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from raison.core.results.scores import Comparison
from raison.report.style.markup import assets, document, rendered
from raison.report.tables.records import Table
from raison.report.tables.results import Results, by_target, caption, results_table, warnings


@dataclass(frozen=True, slots=True)
class Scored:
    """A table of results with the meaning of its numbers, cautions, a table for each label, and the settings."""

    table: Table
    caption: str
    warnings: Sequence[str]
    by_target: Mapping[str, Table]
    settings: Mapping[str, str]

    @property
    def has_seeds(self) -> bool:
        """Whether a cell gives the range of single seeds' values."""
        return any(cell.seeds for _, cells in self.table.rows for cell in cells)


def scored(results: Results) -> Scored:
    """The results as the page shows them."""
    settings = results.settings if isinstance(results, Comparison) else {}
    stated = {name: json.dumps(value, ensure_ascii=False, default=str) for name, value in settings.items()}
    each = {name: results_table(scores) for name, scores in by_target(results).items()}
    return Scored(results_table(results), caption(results), warnings(results), each, stated)


def results_page(results: Results) -> str:
    """A standalone page of a table, without any link to the network."""
    title = f"Comparison on {results.data}" if isinstance(results, Comparison) else "Scores"
    body = rendered("scores.html", {"title": title, "shown": scored(results), "styles": ""})
    return document(title, body, ("explanation.css", "page.css"))


def results_fragment(results: Results) -> str:
    """A table for a notebook: styles reach only into it, light or dark as the notebook is."""
    styles = assets(("explanation.css", "fragment.css"))
    return str(rendered("scores.html", {"title": "", "shown": scored(results), "styles": styles}))
