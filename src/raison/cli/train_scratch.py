"""raison train scratch: a small classifier from nothing, or a whole base."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from raison.cli.options import Delimiter
from raison.cli.training import columns_of, command_line, names_in, read_split
from raison.data import Wanted
from raison.data import known_features as add_known_features


def scratch(
    context: typer.Context,
    train: Annotated[str, typer.Option(help="Training data: a tsv, csv, txt, jsonl or parquet file, or SET:SPLIT.")],
    dev: Annotated[str, typer.Option(help="Texts that choose the best epoch and give the accuracy.")],
    out: Annotated[Path, typer.Option(help="Folder for the whole model, its tokenizer and its card.")],
    architecture: Annotated[
        str, typer.Option(help="bert, gpt2, roberta or t5_encoder; of a base, t5_encoder takes a T5's encoder.")
    ] = "",
    base: Annotated[str, typer.Option(help="Train all of a base: a known name, a folder, or an id of the Hub.")] = "",
    layers: Annotated[
        int | None, typer.Option(min=1, help="Layers of a small model (2), or the lowest so many of a base (all).")
    ] = None,
    width: Annotated[int, typer.Option(min=1, help="Width of a small model.")] = 64,
    heads: Annotated[int, typer.Option(min=1, help="Attention heads of a small model.")] = 4,
    vocabulary: Annotated[int, typer.Option(min=1, help="Tokens that a small model knows.")] = 4000,
    masked: Annotated[float, typer.Option(help="Share of texts that are masked in part while it learns.")] = 0.0,
    labels: Annotated[str, typer.Option(help="Names of numeric labels, in order: negative,positive.")] = "",
    text: Annotated[str | None, typer.Option(help="The text's column.")] = None,
    pair: Annotated[str | None, typer.Option(help="The columns of a pair of texts: premise,hypothesis.")] = None,
    label: Annotated[str | None, typer.Option(help="The label's column.")] = None,
    delimiter: Delimiter = None,
    epochs: Annotated[int, typer.Option(min=1)] = 5,
    batch_size: Annotated[int, typer.Option(min=1)] = 32,
    lr: Annotated[float, typer.Option(help="Highest learning rate.")] = 1e-3,
    max_tokens: Annotated[int, typer.Option(min=8, help="Longer texts are cut.")] = 128,
    seed: Annotated[int, typer.Option(help="Decides the weights and the order of the rows.")] = 0,
    known_features: Annotated[
        str, typer.Option(help="Draw labels at random and append the word that tells them: negative,positive.")
    ] = "",
) -> None:
    """Train a whole classifier; started again after a kill, it goes on from its last epoch."""
    # Only now: the help page must not wait for torch.
    from raison.training.recipes.card import described
    from raison.training.recipes.scratch import ScratchSettings, train_scratch

    wanted = Wanted(text, columns_of(pair), label, delimiter=delimiter)
    splits = [read_split(source, wanted, skip_bad=False) for source in (train, dev)]
    if words := names_in(known_features):
        splits = [add_known_features(split, words) for split in splits]
    elif names := names_in(labels):
        splits = [replace(split, labels=names) for split in splits]
    settings = ScratchSettings(
        architecture=architecture,
        base=base,
        layers=layers,
        width=width,
        heads=heads,
        vocabulary=vocabulary,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=lr,
        masked=masked,
        max_tokens=max_tokens,
        seed=seed,
    )
    card = train_scratch(splits[0], splits[1], out, settings, command_line(context, "scratch"))
    typer.echo(f"{out}: held_out {described(card, 'held_out')}")
