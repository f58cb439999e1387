"""raison estimate."""

import json as json_module
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING

import typer

from raison.cli import options

if TYPE_CHECKING:
    from raison.judging.estimate import Estimate


def estimate(
    data: options.Data,
    model: options.Model = "demo/sst2",
    methods: options.Methods = "integrated_gradients,kernel_shap,lime,occlusion",
    metrics: options.Metrics = None,
    limit: options.Limit = None,
    text_column: options.TextColumn = None,
    pair_column: options.PairColumn = None,
    delimiter: options.Delimiter = None,
    split: options.Split = "test",
    unit: options.Unit = "word",
    truncate: options.Truncate = False,
    skip_bad: options.SkipBad = False,
    prompt: options.Prompt = None,
    explain_prompt: options.ExplainPrompt = False,
    calibrate: options.Calibrate = False,
    device: options.Device = None,
    dtype: options.Dtype = None,
    json: options.Json = False,
) -> None:
    """Say how many passes, how much memory and about how much time `compare` will take."""
    from raison.cli.rows import Source, readable_texts
    from raison.explaining.attribution import Settings
    from raison.judging.estimate import estimate as run

    chosen, judges = options.asked_for(methods, metrics)
    loaded = options.load_classifier(model, (prompt, explain_prompt, calibrate), device, dtype)
    source = readable_texts(loaded, Source(data, text_column, pair_column, split, limit, skip_bad, truncate, delimiter))
    if methods == "all":
        chosen = options.able_methods(loaded, source.texts, (unit, truncate))  # type: ignore[arg-type]
    found = run(loaded, source.texts, chosen, judges, Settings(unit=unit, truncate=truncate))  # type: ignore[arg-type]
    if json:
        typer.echo(json_module.dumps(asdict(found), indent=1))
    else:
        _show(found, source.name)


def _show(found: "Estimate", name: str) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("passes over all texts")
    table.add_column("forward", justify="right")
    table.add_column("backward", justify="right")
    for method, forwards in found.forwards.items():
        table.add_row(method, f"{forwards:,}", f"{found.backwards[method]:,}")
    table.add_row("metrics", f"{found.metric_forwards:,}", f"{found.metric_backwards:,}")
    console = Console(highlight=False)
    console.print(f"{name}: {found.texts} texts, {found.mean_units:.1f} units and {found.mean_tokens:.1f} tokens each")
    console.print(table)
    console.print(
        f"about {timedelta(seconds=round(found.seconds))} here; weights {_size(found.model_bytes)}, "
        f"a full batch {_size(found.batch_bytes)}; at most, since equal perturbations are evaluated once"
    )


def _size(count: int) -> str:
    return f"{count / 2**20:,.0f} MiB"
