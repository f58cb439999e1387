"""raison train scratch: a small classifier from scratch, or all weights of a base."""

from pathlib import Path
from typing import Annotated

import typer

from raison.cli.options import But, from_records
from raison.cli.readable_texts import read
from raison.cli.train.shared import KnownFeatureOptions, command_line, named
from raison.data import Wanted
from raison.training.recipes.scratch_settings import ScratchSettings

Labels = Annotated[str, typer.Option(help="Names of numeric labels, in order: negative,positive.")]


@from_records
def scratch(
    context: typer.Context,
    train: Annotated[str, typer.Option(help="Training data: a tsv, csv, txt, jsonl or parquet file, or SET:SPLIT.")],
    dev: Annotated[str, typer.Option(help="Held-out texts that select the best epoch and give the accuracy.")],
    out: Annotated[Path, typer.Option(help="Folder for the whole model, its tokenizer and its card.")],
    wanted: Wanted,
    settings: ScratchSettings,
    features: Annotated[KnownFeatureOptions, But(without=("known_correlation",))],
    labels: Labels = "",
) -> None:
    """Train a whole classifier. If killed, run it again to resume from its last epoch."""
    # Imported here: the help page must not wait for torch.
    from raison.cli.options import split_calls
    from raison.training.recipes.card import described
    from raison.training.recipes.scratch import train_scratch

    names = () if features.known_features else tuple(split_calls(labels))
    learned, held_out = (named(features.of(read(source, wanted)), names) for source in (train, dev))
    card = train_scratch(learned, held_out, out, settings, command_line(context, "scratch"))
    typer.echo(f"{out}: held_out {described(card, 'held_out')}")
