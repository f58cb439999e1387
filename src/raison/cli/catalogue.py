"""raison methods, raison metrics."""

import json as json_module
from dataclasses import fields

import typer

from raison.cli import options

BETTER = {True: "higher", False: "lower", None: "neither"}


def methods(json: options.Json = False) -> None:
    """List the methods with what they need, what they promise and what they cost."""
    from raison.methods import CATALOGUE

    rows = [
        {
            "method": name,
            "about": _summary(cls),
            "needs": sorted(cls.needs),
            "properties": sorted(cls.properties),
            "passes": cls.passes,
            "settings": _settings(cls),
            "reference": cls.reference,
        }
        for name in CATALOGUE.names
        for cls in [CATALOGUE.get(name)]
    ]
    _print(rows, json)


def metrics(json: options.Json = False) -> None:
    """List the metrics with their direction, what they need and their settings."""
    from raison.metrics import CATALOGUE

    rows = [
        {
            "metric": name,
            "about": _summary(cls),
            "better": BETTER[cls.higher_is_better],
            "needs": sorted(cls.needs),
            "settings": _settings(cls),
            "reference": cls.reference,
        }
        for name in CATALOGUE.names
        for cls in [CATALOGUE.get(name)]
    ]
    _print(rows, json)


def _settings(cls: type) -> dict[str, object]:
    return {field.name: field.default for field in fields(cls)}


def _summary(cls: type) -> str:
    return (cls.__doc__ or "").strip().split("\n\n")[0].replace("\n", " ")


def _print(rows: list[dict[str, object]], json: bool) -> None:
    if json:
        typer.echo(json_module.dumps(rows, indent=1))
        return
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(highlight=False)
    for row in rows:
        name, about, *facts = row
        console.print(Text(str(row[name]), style="bold"))
        console.print(Padding(Text(str(row[about])), (0, 0, 0, 2)))
        shown = [f"{fact}: {_cell(row[fact])}" for fact in facts if _cell(row[fact])]
        console.print(Padding(Text("; ".join(shown), style="dim"), (0, 0, 1, 2)))


def _cell(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={item}" for key, item in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
