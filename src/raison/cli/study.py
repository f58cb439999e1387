"""raison study: run a study file, or check it."""

import json as json_module
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from raison.cli import options, study_trainings, study_trust
from raison.cli.interruption import interruptible

if TYPE_CHECKING:
    from raison.estimate import Estimate
    from raison.runs.judging import Verdict
    from raison.studies.kinds.comparison.work import Examined

app = typer.Typer(help="Run a study file, or check it.", no_args_is_help=True)

File = Annotated[Path, typer.Argument(help="The study file (.toml).")]
Rows = Annotated[int | None, typer.Option(min=1, help="Use the first so many rows of every data set.")]


@app.callback()
def _study() -> None:
    """Run a study file, or check it."""


@app.command()
@interruptible("folder", "--resume")
def run(
    file: File,
    out: Annotated[Path | None, typer.Option(help="The folder for the records; by default runs/NAME.")] = None,
    limit: Rows = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a study that was interrupted.")] = False,
    shard: Annotated[
        str | None, typer.Option(help="For trainings: 1/2 does one half of a study, and a process with 2/2 the other.")
    ] = None,
    reuse: Annotated[
        list[Path] | None, typer.Option(help="A run or study that has some of the rows already; may be repeated.")
    ] = None,
    json: options.Json = False,
) -> None:
    """Check the whole study, say what it will cost, and run it. A kill loses at most a few texts' work."""
    from raison.core.errors import InputError
    from raison.studies.kinds.trainings.spec import names_trainings
    from raison.studies.kinds.trust.spec import names_trust

    if reuse and (names_trainings(file) or names_trust(file)):
        raise InputError(f"--reuse is for studies that compare methods, and {file} is of another kind: leave it out.")
    if names_trainings(file):
        study_trainings.run(file, study_trainings.Asked(out, limit, resume, shard, json))
        return
    if shard is not None:
        raise InputError(f'--shard is for studies of trainings (kind = "trainings"), and {file} is none: leave it out.')
    if names_trust(file):
        study_trust.run(file, study_trust.Asked(out, limit, resume, json))
        return
    from raison.runs.reuse import runs_in
    from raison.studies.kinds.comparison.spec import read
    from raison.studies.kinds.comparison.work import check_folder, examine, execute_study, folder_of

    sources = runs_in(reuse or ())
    study = read(file)
    folder = folder_of(study, out)
    check_folder(folder, study, limit, resume)
    examined = examine(study, limit, sources)
    _show_estimates(_estimates(examined), stderr=True)
    execute_study(examined, folder, sources=sources)
    _report(folder, json)


@app.command()
@interruptible("nothing")
def check(file: File, limit: Rows = None, json: options.Json = False) -> None:
    """Check a study file with its models and data, and say what it will cost; nothing is run or written."""
    from raison.studies.kinds.trainings.spec import names_trainings
    from raison.studies.kinds.trust.spec import names_trust

    if names_trainings(file):
        study_trainings.check(file, limit, json)
        return
    if names_trust(file):
        study_trust.check(file, limit, json)
        return
    from raison.studies.kinds.comparison.spec import read
    from raison.studies.kinds.comparison.work import examine

    estimates = _estimates(examine(read(file), limit))
    if json:
        from dataclasses import asdict

        found = {name: asdict(estimate) for name, estimate in estimates.items()}
        typer.echo(json_module.dumps({"study": str(file), "runs": found}, ensure_ascii=False, indent=1))
    else:
        _show_estimates(estimates, stderr=False)
        typer.echo(f"{file} can be run.")


def _estimates(examined: "Examined") -> "dict[str, Estimate]":
    from raison.estimate import estimate_plan

    return {name: estimate_plan(plan) for name, plan in examined.work()}


def _show_estimates(estimates: "dict[str, Estimate]", stderr: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("run")
    for column in ("texts", "forward", "backward", "about"):
        table.add_column(column, justify="right")
    for name, found in estimates.items():
        forwards = sum(found.forwards.values()) + found.metric_forwards
        backwards = sum(found.backwards.values()) + found.metric_backwards
        table.add_row(name, f"{found.texts:,}", f"{forwards:,}", f"{backwards:,}", _duration(found.seconds))
    console = Console(stderr=stderr, highlight=False)
    console.print(table)
    total = sum(found.seconds for found in estimates.values())
    console.print(f"about {_duration(total)} here, at most: equal perturbations are evaluated once")


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def _report(folder: Path, json: bool) -> None:
    from raison.cli.output import show
    from raison.runs.table import comparison
    from raison.studies.kinds.comparison.claims import verdicts
    from raison.studies.kinds.comparison.results import read_study

    study = read_study(folder)
    for name, found in study.runs.items():
        if found.dropped:
            typer.echo(
                f"raison: {name}: {found.dropped} broken lines were left out; their work was done again.", err=True
            )
    tables = {name: comparison(found) for name, found in study.runs.items()}
    stated = verdicts(study)
    if json:
        whole: dict[str, Any] = {
            "folder": str(folder),
            "runs": {name: table.to_dict() for name, table in tables.items()},
            "verdicts": [verdict.to_dict() for verdict in stated],
        }
        typer.echo(json_module.dumps(whole, ensure_ascii=False, indent=1, allow_nan=False))
        return
    for table in tables.values():
        show(table)
    show_verdicts(stated)
    typer.echo(f"{folder}: raison report {folder} makes a page of it.")


def show_verdicts(stated: "list[Verdict]") -> None:
    """One line for each claim and run."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for verdict in stated:
        gap = verdict.difference
        seen = f", difference {gap.mean:.3f} [{gap.low:.3f}, {gap.high:.3f}], n = {gap.count}" if gap.count else ""
        seen += ", not after Holm's correction" if verdict.survives is False else ""
        seen += f"; {verdict.note}" if verdict.note else ""
        console.print(Text.assemble((verdict.finding, "bold"), f"  {verdict.says} ({verdict.run}{seen})"))
