"""raison train classifier: fine-tuning of a text classifier."""

from pathlib import Path
from typing import Annotated

import typer

from raison.cli.options import from_records
from raison.cli.readable_texts import read
from raison.cli.train.shared import KnownFeatureOptions, SkipBad, command_line
from raison.data import Wanted
from raison.training.recipes.classifier_settings import ClassifierSettings


@from_records
def classifier(
    context: typer.Context,
    train: Annotated[str, typer.Option(help="Training data: a tsv, csv, txt, jsonl or parquet file, or SET:SPLIT.")],
    test: Annotated[str, typer.Option(help="Test data, used once, after training.")],
    out: Annotated[Path, typer.Option(help="Folder for the adapter and its card.")],
    *,
    dev: Annotated[str | None, typer.Option(help="Development data: scored after each epoch.")] = None,
    base: Annotated[str, typer.Option(help="Base model: a known name or a folder.")] = "minilm",
    wanted: Wanted,
    settings: ClassifierSettings,
    features: KnownFeatureOptions,
    skip_bad: SkipBad = False,
) -> None:
    """Fine-tune a text classifier with low-rank adapters. If killed, run it again to resume."""
    # Imported here: the help page must not wait for torch.
    from raison.training.recipes.card import described
    from raison.training.recipes.classifier import Splits, train_classifier

    splits = [features.of(read(source, wanted, skip_bad=skip_bad)) for source in (train, test, dev) if source]
    card = train_classifier(base, Splits(*splits), out, settings, command_line(context, "classifier"))
    scores = "; ".join(f"{name} {described(card, name)}" for name in card["accuracy"])
    typer.echo(f"{out}: {scores}")
