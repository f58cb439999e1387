"""raison serve."""

import contextlib
import os
from dataclasses import replace
from importlib.util import find_spec
from typing import Annotated

import typer

from raison.cli import options
from raison.core.errors import DataError
from raison.web.server.settings import TOKEN, Access, Limits, Shown

Models = Annotated[
    list[str], typer.Option("--model", "-m", help="Demo name, Hub id or folder of a model; give it several times.")
]
Device = Annotated[str | None, typer.Option(help="Where to put the models, such as cpu or cuda.")]


@options.from_records
def serve(model: Models, access: Access, shown: Shown, limits: Limits, device: Device = None) -> None:
    """Explain over HTTP: a page, and JSON below /api. Only these models are served, and only to this machine."""
    lacking = [name for name in ("fastapi", "uvicorn", "prometheus_client") if find_spec(name) is None]
    if lacking:
        raise DataError(f"raison serve needs {', '.join(lacking)}: pip install 'raison[serve]'.")
    access = replace(access, token=access.token or os.environ.get(TOKEN))
    access.check()
    shown.check()

    from raison.models.loading.load import load
    from raison.web.server.running import run
    from raison.web.server.served import Served

    loaded = {name: load(name, device=device) for name in model}
    served = Served(loaded, access, limits, shown)

    def ready(address: str) -> None:
        typer.echo(f"raison: serving {', '.join(loaded)} at {address} (Ctrl-C ends it)", err=True)

    with contextlib.suppress(KeyboardInterrupt):
        run(served, ready)
