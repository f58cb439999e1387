"""raison doctor."""

from typing import TYPE_CHECKING, Annotated

import typer

from raison.cli import options
from raison.core.settings.reading import dump, plain_values

if TYPE_CHECKING:
    from raison.explaining.diagnosis import Diagnosis


@options.from_records
def doctor(
    entry: Annotated[options.Model, options.But(argument="name")],
    text: Annotated[str | None, typer.Option(help="Text for the checks.")] = None,
    tokens: Annotated[
        int | None,
        typer.Option(min=1, help="Text length in tokens for the time and memory forecast; by default the maximum."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Check what a model supports and which methods will work on it. Exit code 1 if a check fails."""
    from raison.explaining.diagnosis import doctor as examine
    from raison.studies.plans import load_entry

    diagnosis = examine(load_entry(entry), text, tokens)
    if json:
        typer.echo(dump(plain_values(diagnosis.to_dict()), 1))
    else:
        _show(diagnosis)
    if not diagnosis.passed:
        raise typer.Exit(1)


def _show(diagnosis: "Diagnosis") -> None:
    from rich.console import Console
    from rich.text import Text

    from raison.core.results.printable import printable

    console = Console(highlight=False)
    for line in [*diagnosis.told_facts, ""]:
        console.print(Text(printable(line)))
    for check in diagnosis.checks:
        mark, style = ("ok  ", "green") if check.passed else ("FAIL", "bold red")
        console.print(Text.assemble((mark, style), printable(f"  {check.check}: {check.detail}")))
    for line in ["", *diagnosis.told_methods]:
        console.print(Text(printable(line)))
