"""raison compare."""

from dataclasses import dataclass
from functools import partial
from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from raison.cli import options
from raison.cli.readable_texts import TextSource, judged_rows
from raison.core.errors import UnfinishedError
from raison.core.settings.fields import Setting
from raison.explaining.settings import ComparisonSettings, Settings
from raison.jobs.engine import WHOLE, Sharing


@dataclass(frozen=True, slots=True)
class Comparing:
    """The options of a command that compares, besides the settings; see raison.compare."""

    texts: options.TextOptions
    out: Annotated[Path | None, Setting("Folder for explanations and scores; run again to resume.")] = None
    threshold: options.Threshold = None


@options.from_records
def compare(
    source: TextSource,
    entry: options.Model,
    chosen: ComparisonSettings,
    settings: Annotated[Settings, options.But(without=("seed",))],
    sharing: Sharing,
    comparing: Comparing,
    json: options.Json = False,
) -> None:
    """Compare methods on a data set, with random scores as the baseline.

    For a generative model, the data are questions with their sources: columns question and sources, and answer and gold
    if they are known (docs/cite.md).
    """
    from raison.judging.compare import compare as run
    from raison.report.pages.showing import show
    from raison.studies.plans import load_entry

    # Mistakes in the request are reported before the model is loaded.
    options.check_named(chosen)
    model = load_entry(entry)
    data = judged_rows(model, source, settings)
    try:
        comparison = run(
            model,
            data.texts,
            options.methods_of(chosen, model, data.texts, settings, comparing.texts),
            options.metrics_of(chosen),
            unit=settings.unit,
            units=comparing.texts.units,
            language=comparing.texts.language,
            target=data.target,
            of=settings.of,
            removal=settings.removal,
            seed=chosen.seeds,
            truncate=settings.truncate,
            precision=settings.precision,
            rationales=data.rationales,
            select=chosen.select,
            out=comparing.out,
            data=data.name,
            sharing=sharing,
            load=partial(load_entry, entry),
            threshold=comparing.threshold,
        )
    except UnfinishedError as error:
        if sharing.shard == WHOLE:
            raise
        # A share without a job of its own, or the first one to end.
        typer.echo(dumps({"unfinished": str(error)}) if json else str(error), err=not json)
        return
    typer.echo(comparison.to_json(indent=1)) if json else show(comparison)
