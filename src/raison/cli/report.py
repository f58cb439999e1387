"""raison report."""

from pathlib import Path
from typing import Annotated

import typer

from raison.cli import options
from raison.core.settings.reading import dump


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of raison study run, audit, compare --out or explain --data.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the report; FOLDER/report by default.")] = None,
    plots: options.Plots = True,
    json: options.Json = False,
) -> None:
    """Write a study's report so far: a page, Markdown and LaTeX tables, and a page per text."""
    from raison.report.pages.document import LATEX, MARKDOWN
    from raison.studies.reports import write

    page = write(folder, out, options.plots_where_possible(plots))
    tables = [page.with_name(name) for name in (MARKDOWN, LATEX)]
    if json:
        typer.echo(dump({"page": str(page), "tables": [str(path) for path in tables]}))
    else:
        typer.echo(f"{page}\ntables: {', '.join(map(str, tables))}")
