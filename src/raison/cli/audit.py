"""raison audit."""

import json as json_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raison.cli import options

if TYPE_CHECKING:
    from raison.studies.kinds.audit.results import Audit


def audit(
    data: options.Data,
    model: options.Model = "demo/sst2",
    methods: Annotated[
        str, typer.Option("--methods", help="Names or calls with commas between; by default all usual ones that fit.")
    ] = "",
    text_column: options.TextColumn = None,
    pair_column: options.PairColumn = None,
    delimiter: options.Delimiter = None,
    split: options.Split = "test",
    limit: options.Limit = 50,
    unit: options.Unit = "word",
    removal: options.RemovalOption = None,
    seed: options.Seed = 0,
    out: Annotated[Path | None, typer.Option(help="Folder for records and report; run again to go on.")] = None,
    estimate: Annotated[bool, typer.Option("--estimate", help="Only say what it will take.")] = False,
    plots: options.Plots = True,
    shard: options.ShardOption = None,
    workers: options.Workers = 1,
    truncate: options.Truncate = False,
    skip_bad: options.SkipBad = False,
    prompt: options.Prompt = None,
    device: options.Device = None,
    dtype: options.Dtype = None,
    json: options.Json = False,
) -> None:
    """Which explanations can be trusted on this model: test every method, and write a report with a recommendation."""
    from raison.cli.output import plots_where_possible
    from raison.cli.rows import Source, readable_texts
    from raison.explaining.attribution import Settings
    from raison.methods import CATALOGUE
    from raison.studies.kinds.audit.work import audit as run
    from raison.studies.kinds.audit.work import estimate_audit
    from raison.studies.parts import StudyModel
    from raison.studies.reports import write

    sharing = options.sharing_of(shard, workers)
    chosen = options.named_in(methods, CATALOGUE) if methods else None
    loaded = options.load_classifier(model, (prompt, False, False), device, dtype)
    found = readable_texts(loaded, Source(data, text_column, pair_column, split, limit, skip_bad, truncate, delimiter))
    settings = Settings(unit=unit, removal=removal, seed=seed, truncate=truncate)  # type: ignore[arg-type]
    folder = Path("runs") / f"audit-{_plain_name(loaded.name)}-{_plain_name(found.name)}" if out is None else out
    if estimate:
        told = estimate_audit(loaded, found.texts, chosen, settings=settings)
        typer.echo(json_module.dumps(told.to_dict()) if json else told.text())
        return
    entry = StudyModel(model, prompt=prompt, device=device, dtype=dtype)
    audited = run(
        loaded, found.texts, chosen, out=folder, settings=settings, data=found.name, sharing=sharing, entry=entry
    )
    _show(audited, write(folder, None, plots_where_possible(plots)), json)


def _show(audited: "Audit", page: Path, json: bool) -> None:
    from rich.console import Console

    from raison.report.pages.writing import shown
    from raison.studies.kinds.audit.sections import sections

    if json:
        typer.echo(json_module.dumps(audited.to_dict() | {"page": str(page)}, ensure_ascii=False))
        return
    console = Console(highlight=False)
    for part in shown(sections(audited)):
        console.print(part)
    typer.echo(page)


def _plain_name(name: str) -> str:
    kept = "".join(letter if letter.isalnum() or letter in "._" else "-" for letter in name)
    return kept.strip("-.")
