"""raison explain."""

from pathlib import Path
from typing import Annotated

import typer

from raison.cli import options


def explain(
    text: Annotated[str, typer.Argument(help="The text; - reads it from standard input.")],
    model: options.Model = "demo/sst2",
    method: Annotated[str, typer.Option("--method", "-M", help="Name or call: kernel_shap(samples=512).")] = (
        "integrated_gradients"
    ),
    pair: Annotated[str | None, typer.Option(help="Second text of a pair, such as the hypothesis.")] = None,
    unit: options.Unit = "word",
    target: options.TargetOption = None,
    of: options.Of = "probability",
    removal: options.RemovalOption = None,
    seed: options.Seed = 0,
    truncate: options.Truncate = False,
    device: options.Device = None,
    dtype: options.Dtype = None,
    html: Annotated[Path | None, typer.Option(help="Also write a standalone page to this file.")] = None,
    json: options.Json = False,
) -> None:
    """Show which parts of a text made the model say that."""
    from raison.cli.output import show, write_text

    if text == "-":
        text = typer.get_text_stream("stdin").read()
    from raison.explain import explain as run
    from raison.models.load import load

    explanation = run(
        load(model, device=device, dtype=dtype),
        text if pair is None else (text, pair),
        method,
        unit=unit,
        target=options.target_of(target),
        of=of,
        removal=removal,
        seed=seed,
        truncate=truncate,
    )
    if html is not None:
        write_text(html, explanation.to_html())
    if json:
        typer.echo(explanation.to_json(indent=1))
    else:
        show(explanation)
