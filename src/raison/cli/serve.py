"""raison serve."""

import contextlib
import os
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from raison.cli import options
from raison.cli.served_models import served_models
from raison.core.errors import DataError
from raison.web.server.settings import TOKEN, Access, Limits, VisibleFolders

Models = Annotated[
    list[str] | None,
    typer.Option("--model", "-m", help="Demo name, Hub id or folder of a model; may be repeated."),
]
Prompt = Annotated[
    str | None,
    typer.Option(help="Turns the language model of --model into a classifier: a shipped prompt or a TOML file."),
]
File = Annotated[
    Path | None, typer.Option("--models", help="A TOML file of models: [models.NAME] with name, prompt, dtype, ...")
]
Device = Annotated[str | None, typer.Option(help="Where to put the models, such as cpu or cuda.")]


@options.from_records
def serve(
    access: Access,
    shown: VisibleFolders,
    limits: Limits,
    model: Models = None,
    prompt: Prompt = None,
    models: File = None,
    device: Device = None,
) -> None:
    """Explain over HTTP: a page, and JSON below /api. Only these models are served, and only to this machine."""
    lacking = [name for name in ("fastapi", "uvicorn", "prometheus_client") if find_spec(name) is None]
    if lacking:
        raise DataError(f"raison serve needs {', '.join(lacking)}: pip install 'raison[serve]'.")
    access = replace(access, token=access.token or os.environ.get(TOKEN))
    access.check()
    shown.check()

    entries = served_models(model or (), prompt, models, device)

    from raison.studies.plans import load_entry
    from raison.web.server.running import run
    from raison.web.server.served import ServedModels

    loaded = {name: load_entry(entry) for name, entry in entries.items()}
    served = ServedModels(loaded, access, limits, shown)

    def ready(address: str) -> None:
        typer.echo(f"raison: serving {', '.join(loaded)} at {address} (Ctrl-C stops it)", err=True)

    with contextlib.suppress(KeyboardInterrupt):
        run(served, ready)
