"""raison train answers: a language model that answers questions by copying from sources."""

from pathlib import Path
from typing import Annotated

import typer

from raison.cli.options import from_records
from raison.cli.train.shared import command_line
from raison.training.recipes.answers_settings import AnswersSettings


@from_records
def answers(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="Folder for the adapter and its card.")],
    *,
    base: Annotated[str, typer.Option(help="Base model: a known name or a folder.")] = "smollm2",
    settings: AnswersSettings,
) -> None:
    """Teach a language model to answer from sources, on SQuAD. If killed, run it again to resume."""
    # Imported here: the help page must not wait for torch.
    from raison.training.recipes.answers import train_answers

    card = train_answers(base, out, settings, command_line(context, "answers"))
    shares = "; ".join(
        f"{name} {share:.2f} (base {card['exact']['base'][name]:.2f})"
        for name, share in card["exact"]["trained"].items()
    )
    typer.echo(f"{out}: exact answers: {shares}")
