"""raison report."""

from pathlib import Path
from typing import Annotated

import typer

from raison.cli import options


def report(
    folder: Annotated[Path, typer.Argument(help="What raison study run or raison compare --out wrote.")],
    out: Annotated[Path | None, typer.Option(help="Where the report goes; FOLDER/report by default.")] = None,
    plots: Annotated[
        bool, typer.Option("--plots/--no-plots", help="Draw plots, where matplotlib is installed.")
    ] = True,
    json: options.Json = False,
) -> None:
    """Write a page, Markdown and LaTeX tables, and a page for every text, from what a study has written so far."""
    from json import dumps

    from raison.cli.output import plots_where_possible
    from raison.studies.kinds.audit.report import write as write_audit
    from raison.studies.kinds.audit.results import is_audit
    from raison.studies.kinds.comparison.report import LATEX, MARKDOWN, write
    from raison.studies.kinds.trainings.report import write as write_trainings
    from raison.studies.kinds.trainings.results import is_trainings
    from raison.studies.kinds.trust.report import write as write_trust
    from raison.trust.results import is_trust

    kinds = ((is_trainings, write_trainings), (is_trust, write_trust), (is_audit, write_audit))
    written = next((writing for holds, writing in kinds if holds(folder)), write)
    page = written(folder, out, plots_where_possible(plots))
    tables = [page.with_name(name) for name in (MARKDOWN, LATEX) if page.with_name(name).exists()]
    if json:
        typer.echo(dumps({"page": str(page), "tables": [str(path) for path in tables]}, ensure_ascii=False))
    else:
        typer.echo(f"{page}\ntables: {', '.join(map(str, tables))}")
