"""raison study: run a study file of any kind, check it, or state its claims anew."""

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raison.cli import options
from raison.cli.interruption import interruptible
from raison.jobs.engine import Sharing
from raison.progress import progress_bar

if TYPE_CHECKING:
    from raison.studies.kind import EstimateTable, Examined

app = typer.Typer(help="Run a study file, check it, or state its claims anew.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="The study file (.toml).")]
Rows = Annotated[int | None, typer.Option(min=1, help="Use only the first N rows of every data set.")]


@app.command()
@interruptible("folder", "--resume")
@options.from_records
def run(
    file: File,
    sharing: Sharing,
    out: Annotated[Path | None, typer.Option(help="The folder for the records; by default runs/NAME.")] = None,
    limit: Rows = None,
    resume: Annotated[bool, typer.Option("--resume", help="Resume an interrupted study.")] = False,
    reuse: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of a run or study whose finished work is reused; may be repeated."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Check the whole study, estimate its cost, and run it. A kill loses at most a few texts' work."""
    from raison.studies.runner import run as run_study

    folder = run_study(file, out, limit, resume, reuse=reuse or (), sharing=sharing, on_start=_show_estimate)
    report(folder, json)


@app.command()
@interruptible("nothing")
def check(file: File, limit: Rows = None, json: options.Json = False) -> None:
    """Check a study file with its models and data, and estimate its cost.

    Models that the study makes itself are trained first, once; nothing else is run or written.
    """
    from raison.studies.file import read
    from raison.studies.runner import examine

    study = read(file)
    estimate = _estimated(examine(study, limit))
    if json:
        typer.echo(json_module.dumps({"study": str(file), **estimate.values}, ensure_ascii=False, indent=1))
    else:
        _show(estimate, stderr=False)
        typer.echo(f"{file} can be run.")


@app.command()
@interruptible("nothing")
def restate(
    file: File,
    folder: Annotated[Path, typer.Argument(help="What `raison study run` wrote.")],
    json: options.Json = False,
) -> None:
    """Judge a folder's records by the claims of a changed study file, and keep those that it leaves out as withdrawn.

    Only the title, what the study is about, its source and its claims may differ. Nothing is loaded or run.
    """
    from raison.studies.restating import restate as run_restate

    done = run_restate(file, folder)
    if not json:
        typer.echo(f"{folder}: {done.claims} claims, {len(done.added)} new, {len(done.withdrawn)} withdrawn.")
    report(folder, json)


def _show_estimate(examined: "Examined") -> None:
    """Print the estimated cost of a study on stderr."""
    _show(_estimated(examined), stderr=True)


def _estimated(examined: "Examined") -> "EstimateTable":
    """The estimate, with the steps of the runs that it times."""
    with progress_bar("estimate", 1, True):
        return examined.study.kind.work.estimate(examined)


def _show(estimate: "EstimateTable", stderr: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    first, *others = estimate.table.head
    table.add_column(first)
    for column in others:
        table.add_column(column, justify="right")
    for name, cells in estimate.table.rows:
        table.add_row(name, *(cell.mean for cell in cells))
    console = Console(stderr=stderr, highlight=False)
    console.print(table)
    for line in estimate.lines:
        console.print(line, markup=False)


def report(folder: Path, json: bool) -> None:
    """A summary of a folder's results: tables and claims."""
    from raison.report.pages.writing import show
    from raison.studies.claims import verdicts
    from raison.studies.folder import left_out
    from raison.studies.kind import kind_of
    from raison.studies.reports import document_of

    results = kind_of(folder).results.read(folder)
    if results.dropped and any(True for _ in results.unfinished()):
        typer.echo(f"raison: {left_out(results.dropped)}", err=True)
    stated = verdicts(results)
    if json:
        whole = {
            "folder": str(folder),
            **results.to_dict(),
            "verdicts": [verdict.to_dict() for verdict in stated],
            "withdrawn": [claim.to_dict() for claim in results.header.withdrawn],
            "unfinished": list(results.unfinished()),
        }
        typer.echo(json_module.dumps(whole, ensure_ascii=False, indent=1, allow_nan=False))
        return
    show(document_of(results), stated)
    typer.echo(f"{folder}: raison report {folder} makes a page of it.")
