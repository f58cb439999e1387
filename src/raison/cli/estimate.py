"""raison estimate."""

from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from raison.cli import options
from raison.cli.readable_texts import TextSource, judged_rows
from raison.core.settings.reading import dump, plain_values
from raison.core.targets.choices import EACH
from raison.explaining.settings import ComparisonSettings, Settings
from raison.progress import progress_bar

if TYPE_CHECKING:
    from raison.judging.estimate import Estimate


@dataclass(frozen=True, slots=True)
class Estimating:
    """The options of a command that estimates, besides the settings; see raison.compare."""

    texts: options.TextOptions
    threshold: options.Threshold = None


@options.from_records
def estimate(
    source: TextSource,
    entry: options.Model,
    chosen: Annotated[ComparisonSettings, options.But(without=("seeds", "select"))],
    settings: Annotated[Settings, options.But(without=("seed",))],
    estimating: Estimating,
    json: options.Json = False,
) -> None:
    """Estimate the passes, memory and time of `compare`."""
    from raison.judging.estimate import estimate as run
    from raison.studies.plans import load_entry

    options.check_named(chosen)
    model = load_entry(entry)
    data = judged_rows(model, source, settings)
    methods = options.methods_of(chosen, model, data.texts, settings, estimating.texts)
    metrics = options.metrics_of(chosen)
    with progress_bar("estimate", 1, True):
        cost = run(
            model,
            data.texts,
            methods,
            metrics,
            replace(settings, target=data.target),
            units=estimating.texts.units,
            language=estimating.texts.language,
            threshold=estimating.threshold,
        )
    if json:
        typer.echo(dump(plain_values(asdict(cost)), 1))
    else:
        _show(cost, data.name, "prediction" if settings.target == EACH else "text")


def _show(cost: "Estimate", name: str, thing: str) -> None:
    from rich.console import Console
    from rich.table import Table

    from raison.report.style import phrases

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("passes over all texts")
    table.add_column("forward", justify="right")
    table.add_column("backward", justify="right")
    for method, forwards in cost.forwards.items():
        table.add_row(method, f"{forwards:,}", f"{cost.backwards[method]:,}")
    table.add_row("metrics", f"{cost.metric_forwards:,}", f"{cost.metric_backwards:,}")
    console = Console(highlight=False)
    console.print(
        f"{name}: {phrases.count(cost.texts, thing)}, {cost.mean_units:.1f} units and {cost.mean_tokens:.1f} tokens "
        "each"
    )
    console.print(table)
    if cost.requests:
        console.print(
            f"at most {cost.requests:,} requests of {cost.request_tokens:,} tokens, cost {cost.request_cost:,.4g}; "
            "none was sent, and a server's time is not estimated"
        )
        return
    console.print(
        f"about {timedelta(seconds=round(cost.seconds))} here; weights {_size(cost.model_bytes)}, "
        f"a full batch {_size(cost.batch_bytes)}; this is an upper bound, since equal perturbations are evaluated once"
    )


def _size(count: int) -> str:
    return f"{count / 2**20:,.0f} MiB"
