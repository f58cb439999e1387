"""raison study, for files of studies of trust."""

import json as json_module
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from raison.studies.kinds.trust.work import ExaminedTrust


@dataclass(frozen=True, slots=True)
class Asked:
    """The options of raison study run."""

    out: Path | None
    limit: int | None
    resume: bool
    json: bool


def run(file: Path, asked: Asked) -> None:
    """Check the whole file, say what there is to do, do it, and show what it states."""
    from raison.studies.kinds.trust.spec import read
    from raison.studies.kinds.trust.work import check_trust_folder, examine_trust, execute_trust, trust_folder
    from raison.trust.calls import works

    work = works()
    study = read(file, work)
    folder = trust_folder(study, asked.out)
    check_trust_folder(folder, study, asked.limit, asked.resume)
    examined = examine_trust(study, work, asked.limit)
    _show(examined, stderr=True)
    execute_trust(examined, folder)
    _report(folder, asked.json)


def check(file: Path, limit: int | None, json: bool) -> None:
    """Check a file with its models and data, and say what there is to do; nothing is run or written."""
    from raison.studies.kinds.trust.spec import read
    from raison.studies.kinds.trust.work import examine_trust
    from raison.trust.calls import works

    work = works()
    examined = examine_trust(read(file, work), work, limit)
    if json:
        found = {"study": str(file), "models": examined.header["models"], "runs": examined.header["runs"]}
        typer.echo(json_module.dumps(found, ensure_ascii=False, indent=1))
    else:
        _show(examined, stderr=False)
        typer.echo(f"{file} can be run.")


def _show(examined: "ExaminedTrust", stderr: bool) -> None:
    """What there is to do, and what is left out."""
    from rich.console import Console
    from rich.table import Table

    from raison.trust.results import TrustRun

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("run")
    for column in ("blocks", "explanations under other parameters", "attacks", "left out"):
        table.add_column(column, justify="right")
    console = Console(stderr=stderr, highlight=False)
    reasons: dict[str, None] = {}
    for entry in examined.header["runs"]:
        planned = TrustRun(entry["name"], entry, {}, {})
        similarities, attacks = (
            sum(1 for _ in keys) for keys in (planned.wanted_similarities(), planned.wanted_attacks())
        )
        without = (entry["randomisation"] or {}).get("left_out", {})
        unable = [found for kind, found in (entry["attacks"] or {}).get("left_out", {}).items()]
        for found in (without, *unable):
            reasons |= dict.fromkeys(f"{method} is left out: {why}" for method, why in found.items())
        left_out = {method for found in (without, *unable) for method in found}
        counts = (planned.blocks, similarities, attacks, len(left_out))
        table.add_row(entry["name"], *(f"{count:,}" if count else "–" for count in counts))
    console.print(table)
    for reason in reasons:
        console.print(reason)


def _report(folder: Path, json: bool) -> None:
    from raison.cli.study import show_verdicts
    from raison.studies.kinds.trust.claims import trust_verdicts
    from raison.studies.kinds.trust.report import text_tables
    from raison.trust.results import read_trust

    study = read_trust(folder)
    dropped = sum(run.dropped for run in study.runs.values())
    if dropped:
        typer.echo(f"raison: {dropped} broken lines were left out; their work was done again.", err=True)
    stated = trust_verdicts(study)
    if json:
        whole = {
            "folder": str(folder),
            "records": sum(run.wanted - run.missing for run in study.runs.values()),
            "wanted": sum(run.wanted for run in study.runs.values()),
            "verdicts": [verdict.to_dict() for verdict in stated],
        }
        typer.echo(json_module.dumps(whole, ensure_ascii=False, indent=1, allow_nan=False))
        return
    typer.echo(text_tables(study))
    show_verdicts(stated)
    typer.echo(f"{folder}: raison report {folder} makes a page of it.")
