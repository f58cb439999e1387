"""Output of results: to the terminal or to a file."""

from importlib.util import find_spec

import typer
from rich.console import Console

from raison.core.results.scores import Comparison
from raison.report.explanations.terminal import explanation_text
from raison.report.style.phrases import Explained
from raison.report.tables.terminal import table


def show(result: Explained | Comparison) -> None:
    """Print to the terminal, in colour if it has any."""
    console = Console(highlight=False)
    console.print(explanation_text(result) if isinstance(result, Explained) else table(result))


def plots_where_possible(wanted: bool) -> bool:
    """Whether to draw plots; without matplotlib, no, with one line on stderr."""
    if not wanted or find_spec("matplotlib") is not None:
        return wanted
    typer.echo("raison: without plots, which need matplotlib (pip install 'raison[report]')", err=True)
    return False
