"""raison train answers: a language model that answers questions by copying from sources."""

from typing import Annotated

import typer

from raison.cli.options import But, from_records
from raison.cli.train.shared import Adapter, command_line
from raison.training.settings.answers import AnswersSettings


@from_records
def answers(
    context: typer.Context,
    adapter: Annotated[Adapter, But(defaults={"base": "smollm2"})],
    settings: AnswersSettings,
) -> None:
    """Teach a language model to answer from sources, on SQuAD. If killed, run it again to resume."""
    # Imported here: the help page must not wait for torch.
    from raison.training.recipes.answers import train_answers

    card = train_answers(adapter.base, adapter.out, settings, command_line(context, "answers"))
    shares = "; ".join(
        f"{name} {share:.2f} (base {card['exact']['base'][name]:.2f})"
        for name, share in card["exact"]["trained"].items()
    )
    typer.echo(f"{adapter.out}: exact answers: {shares}")
