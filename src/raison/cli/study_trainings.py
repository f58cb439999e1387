"""raison study, for files that say which trainings to make."""

import json as json_module
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from raison.studies.kinds.trainings.work import ExaminedTrainings


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of raison study run."""

    out: Path | None
    limit: int | None
    resume: bool
    shard: str | None
    json: bool


def run(file: Path, asked: Asked) -> None:
    """Check the whole file, say what there is to do, do it, and show what it states."""
    from raison.studies.kinds.trainings.spec import read
    from raison.studies.kinds.trainings.work import (
        check_trainings_folder,
        examine_trainings,
        execute_trainings,
        shard_of,
        trainings_folder,
    )

    shard = shard_of(asked.shard)
    study = read(file)
    folder = trainings_folder(study, asked.out)
    # Whoever shares the work comes to a folder that another process may have begun.
    check_trainings_folder(folder, study, asked.limit, asked.resume or asked.shard is not None)
    examined = examine_trainings(study, asked.limit)
    _show(examined, stderr=True)
    execute_trainings(examined, folder, shard)
    _report(folder, asked.json)


def check(file: Path, limit: int | None, json: bool) -> None:
    """Check a file with its bases and data, and say what there is to do; nothing is run or written."""
    from raison.studies.kinds.trainings.spec import read
    from raison.studies.kinds.trainings.work import examine_trainings

    examined = examine_trainings(read(file), limit)
    if json:
        found = {"study": str(file), "tasks": examined.header["tasks"], "rows": examined.header["rows"]}
        typer.echo(json_module.dumps(found, ensure_ascii=False, indent=1))
    else:
        _show(examined, stderr=False)
        typer.echo(f"{file} can be run.")


def _show(examined: "ExaminedTrainings", stderr: bool) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("task")
    columns = ("train", "dev", "test", "fine-tunings", "trainings", "post-hoc rows")
    for column in columns:
        table.add_column(column, justify="right")
    study, seeds = examined.study, len(examined.study.seeds)
    for name, data in examined.data.items():
        trainings = sum(name in row.tasks for row in study.rows)
        posthoc = sum(name in row.tasks for row in study.posthoc)
        sizes = [len(data.train), len(data.dev) if data.dev else 0, len(data.test)]
        table.add_row(name, *(f"{count:,}" for count in (*sizes, seeds, seeds * trainings, seeds * posthoc)))
    Console(stderr=stderr, highlight=False).print(table)


def _report(folder: Path, json: bool) -> None:
    from raison.cli.study import show_verdicts
    from raison.studies.kinds.trainings.claims import training_verdicts
    from raison.studies.kinds.trainings.report import text_tables
    from raison.studies.kinds.trainings.results import read_trainings

    study = read_trainings(folder)
    if study.dropped:
        typer.echo(f"raison: {study.dropped} broken lines were left out; their work was done again.", err=True)
    stated = training_verdicts(study)
    if json:
        whole = {
            "folder": str(folder),
            "records": len(study.records),
            "wanted": len(study.wanted),
            "verdicts": [verdict.to_dict() for verdict in stated],
        }
        typer.echo(json_module.dumps(whole, ensure_ascii=False, indent=1, allow_nan=False))
        return
    typer.echo(text_tables(study))
    show_verdicts(stated)
    typer.echo(f"{folder}: raison report {folder} makes a page of it.")
