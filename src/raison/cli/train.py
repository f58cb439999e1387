"""raison train: models that need training, trained by one command."""

from pathlib import Path
from typing import Annotated

import typer

from raison.cli.interruption import interruptible
from raison.cli.options import Delimiter
from raison.cli.train_aml import aml
from raison.cli.train_ivra import ivra
from raison.cli.train_scratch import scratch
from raison.cli.training import columns_of, command_line, names_in, read_split
from raison.data import Wanted
from raison.data import known_features as add_known_features

app = typer.Typer(help="Train a classifier, or an explainer of one.", no_args_is_help=True)


app.command()(interruptible("folder")(aml))
app.command()(interruptible("folder")(ivra))
app.command()(interruptible("folder")(scratch))


@app.command()
@interruptible("folder")
def classifier(
    context: typer.Context,
    train: Annotated[str, typer.Option(help="Training data: a tsv, csv, txt, jsonl or parquet file, or SET:SPLIT.")],
    test: Annotated[str, typer.Option(help="Test data, used once, after training.")],
    out: Annotated[Path, typer.Option(help="Folder for the adapter and its card.")],
    dev: Annotated[str | None, typer.Option(help="Development data: scored after each epoch.")] = None,
    base: Annotated[str, typer.Option(help="Base model: a known name or a folder.")] = "minilm",
    labels: Annotated[str, typer.Option(help="Names of numeric labels, in order: negative,positive.")] = "",
    text: Annotated[str | None, typer.Option(help="The text's column; title+description joins two.")] = None,
    pair: Annotated[str | None, typer.Option(help="The columns of a pair of texts: premise,hypothesis.")] = None,
    label: Annotated[str | None, typer.Option(help="The label's column.")] = None,
    delimiter: Delimiter = None,
    epochs: Annotated[int, typer.Option(min=1)] = 3,
    batch_size: Annotated[int, typer.Option(min=1)] = 32,
    lr: Annotated[float, typer.Option(help="Highest learning rate.")] = 1e-3,
    rank: Annotated[int, typer.Option(min=1, help="Rank of the adapters.")] = 16,
    dropout: Annotated[float, typer.Option(min=0, max=0.9, help="Dropout of the adapters.")] = 0.05,
    last_layers: Annotated[int | None, typer.Option(min=1, help="Adapters in so many blocks only, the last.")] = None,
    max_tokens: Annotated[int, typer.Option(min=4, help="Longer texts are cut.")] = 128,
    limit: Annotated[int | None, typer.Option(min=1, help="Train on so many rows, drawn at random.")] = None,
    test_limit: Annotated[int | None, typer.Option(min=1, help="Test on so many rows, drawn at random.")] = None,
    seed: Annotated[int, typer.Option(help="Decides the new weights, the rows and their order.")] = 0,
    keep_best: Annotated[bool, typer.Option("--keep-best", help="End with the best epoch by the dev data.")] = False,
    half: Annotated[bool, typer.Option("--half", help="Train in bfloat16: faster where supported.")] = False,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Go on without the broken lines of the data.")] = False,
    known_features: Annotated[
        str, typer.Option(help="Draw labels at random and append the word that tells them: negative,positive.")
    ] = "",
    known_correlation: Annotated[
        float, typer.Option(help="Share of rows that get their word; below 1 the model sees texts without any.")
    ] = 1.0,
) -> None:
    """Fine-tune a text classifier by low-rank adapters; started again after a kill, it goes on where it was."""
    # Only now: the help page must not wait for torch.
    from raison.training.recipes.card import described
    from raison.training.recipes.classifier import ClassifierSettings, Splits, train_classifier

    wanted = Wanted(text, columns_of(pair), label, delimiter=delimiter)
    splits = [read_split(source, wanted, skip_bad) for source in (train, test, dev) if source]
    if words := names_in(known_features):
        splits = [add_known_features(split, words, correlation=known_correlation) for split in splits]
    settings = ClassifierSettings(
        labels=names_in(labels),
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=lr,
        rank=rank,
        dropout=dropout,
        last_layers=last_layers,
        max_tokens=max_tokens,
        limit=limit,
        test_limit=test_limit,
        seed=seed,
        keep_best=keep_best,
        half=half,
    )
    card = train_classifier(base, Splits(*splits), out, settings, command_line(context, "classifier"))
    scores = "; ".join(f"{name} {described(card, name)}" for name in card["accuracy"])
    typer.echo(f"{out}: {scores}")
