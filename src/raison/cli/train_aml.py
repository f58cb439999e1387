"""raison train aml: an explainer by attributive masking."""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from raison.cli.options import (
    Delimiter,
    Device,
    Dtype,
    EvenAtChance,
    Model,
    Prompt,
    WholeText,
    load_classifier,
    split_calls,
)
from raison.cli.training import command_line, read_split
from raison.core.errors import InputError
from raison.data import Dataset, Wanted
from raison.data.lengths import at_most, first_words

if TYPE_CHECKING:
    from raison.numerics.losses.attributive_masking import LossWeights
    from raison.training.recipes.aml_settings import AmlSettings

Masking = Annotated[
    str | None, typer.Option(help="What stands in: mask, ellipsis, unk, pad, random, predicted, learned.")
]


def aml(
    context: typer.Context,
    data: Annotated[str, typer.Option("--data", "-d", help="Texts to learn on: a file, or SET:SPLIT.")],
    model: Model = "demo/sst2",
    out: Annotated[
        Path | None, typer.Option(help="Folder for the explainer; by default where --method aml looks for it.")
    ] = None,
    dev: Annotated[str | None, typer.Option(help="Other texts to judge on; by default a part of the data.")] = None,
    metrics: Annotated[
        str, typer.Option("--metrics", "--metric", help="What to be best in; several with commas share the search.")
    ] = "comprehensiveness",
    prompt: Prompt = None,
    backbone: Annotated[
        str | None, typer.Option(help="The attribution model's: own, minilm, a folder or a Hub id of an encoder.")
    ] = None,
    rank: Annotated[int, typer.Option(min=0, help="Of the matrices added to the backbone; 0 trains all of it.")] = 4,
    lr: Annotated[float | None, typer.Option(help="Learning rate; 0.001, or 0.00004 with --rank 0.")] = None,
    weights: Annotated[
        str, typer.Option(help="The losses' weights prediction,inverse,size, such as 1,1,0.5: no search.")
    ] = "",
    without: Annotated[str | None, typer.Option(help="Leave out a loss: prediction or inverse.")] = None,
    masking: Masking = None,
    filler: Annotated[str | None, typer.Option(help="A masked language model, for --masking predicted.")] = None,
    size: Annotated[str, typer.Option(help="How a mask's size is punished: cross_entropy or l1.")] = "cross_entropy",
    merge: Annotated[str, typer.Option(help="A unit's score, of its tokens': max or mean.")] = "max",
    unit: Annotated[str, typer.Option("--unit", "-u", help="What is masked: token, word or sentence.")] = "token",
    texts: Annotated[int, typer.Option(min=1, help="Texts to learn from.")] = 1000,
    validation: Annotated[int, typer.Option(min=1, help="Texts to judge on.")] = 200,
    epochs: Annotated[int, typer.Option(min=1)] = 10,
    batch_size: Annotated[int, typer.Option(min=1)] = 20,
    trials: Annotated[int, typer.Option(min=1, help="Weights that the search tries.")] = 30,
    search_texts: Annotated[int, typer.Option(min=1, help="Texts that a trial learns from.")] = 450,
    search_epochs: Annotated[int, typer.Option(min=1)] = 2,
    longest: Annotated[int | None, typer.Option(min=1, help="Leave out texts of more words.")] = None,
    words: Annotated[int | None, typer.Option("--first-words", min=1, help="Cut texts after so many words.")] = None,
    text: WholeText = None,
    delimiter: Delimiter = None,
    seed: Annotated[int, typer.Option(help="Decides the texts, the new weights and the search.")] = 0,
    half: Annotated[bool, typer.Option("--half", help="Train in bfloat16: faster where supported.")] = False,
    even_at_chance: EvenAtChance = False,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Go on without the broken lines of the data.")] = False,
    device: Device = None,
    dtype: Dtype = None,
) -> None:
    """Train an explainer of a model by attributive masking (AML); started again after a kill, it goes on.

    The losses' weights are searched for, with the metrics on held-out texts; then the attribution model is trained.
    """
    # Only now: the help page must not wait for torch.
    from raison.models.derived.explainers import own_folder
    from raison.training.recipes.aml import train_aml

    settings = _settings(context.params)
    wanted = Wanted(text, delimiter=delimiter)
    splits = [_shortened(read_split(source, wanted, skip_bad), longest, words) for source in (data, dev) if source]
    explained = load_classifier(model, (prompt, False, False), device, dtype)
    folder = out or own_folder(explained.name, "aml")
    card = train_aml(explained, splits[0], folder, settings, splits[1] if dev else None, command_line(context, "aml"))
    found = ", ".join(f"{metric} {goal.validation:.4f}" for metric, goal in card.goals.items())
    typer.echo(f"{folder}: on {validation} held-out texts {found}")


def _settings(options: Mapping[str, Any]) -> "AmlSettings":
    """The options that say how to train: those that are called as the settings are, and a few that read otherwise."""
    from raison.training.recipes.aml_settings import AmlSettings

    read = {
        "metrics": tuple(split_calls(options["metrics"])),
        "above_chance": not options["even_at_chance"],
        "rank": options["rank"] or None,
        "learning_rate": options["lr"],
        "weights": _weights(options["weights"]),
    }
    known = {field.name for field in fields(AmlSettings)}
    return AmlSettings(**{name: value for name, value in options.items() if name in known} | read)


def _shortened(data: Dataset, longest: int | None, words: int | None) -> Dataset:
    cut = data if words is None else first_words(data, words)
    return cut if longest is None else at_most(cut, longest)


def _weights(option: str) -> "LossWeights | None":
    from raison.numerics.losses.attributive_masking import LossWeights

    if not option:
        return None
    try:
        prediction, inverse, size = (float(number) for number in option.split(","))
    except ValueError:
        raise InputError(f"cannot read --weights '{option}': give three numbers, prediction,inverse,size.") from None
    return LossWeights(prediction, inverse, size)
