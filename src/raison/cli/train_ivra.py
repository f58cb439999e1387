"""raison train ivra: a model that is trained to explain itself."""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from math import inf
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
from raison.cli.training import columns_of, command_line, names_in, read_split
from raison.core.errors import InputError
from raison.data import Dataset, Wanted
from raison.data.lengths import at_most, first_words
from raison.data.windows import around_answers

if TYPE_CHECKING:
    from raison.training.recipes.ivra_settings import IvraSettings

PLAIN = "plain"
"""The folder, inside of the trained model's, of a base model that was fine-tuned first."""

Criteria = Annotated[
    str,
    typer.Option(
        "--criteria", "-c", help="What to be good at: sim, comp, suff, suff_mae, suff_kl, cons, clust; with commas."
    ),
]
Words = Annotated[int | None, typer.Option("--first-words", min=1, help="Cut texts after so many words.")]
Window = Annotated[
    int | None, typer.Option("--answer-window", min=1, help="Cut contexts to so many words around the answer.")
]
RollBack = Annotated[
    bool, typer.Option("--roll-back", help="For sim: it takes each step again from the updated model.")
]


def ivra(
    context: typer.Context,
    data: Annotated[str, typer.Option("--data", "-d", help="Labelled texts to learn on: a file, or SET:SPLIT.")],
    criteria: Criteria,
    out: Annotated[Path, typer.Option(help="Folder for the trained model and its explainer.")],
    model: Model = "demo/sst2",
    dev: Annotated[str | None, typer.Option(help="Other texts to judge on; by default a part of the data.")] = None,
    weights: Annotated[str, typer.Option(help="How much each criterion counts beside the task: 1,0.5.")] = "",
    form: Annotated[str, typer.Option(help="The explainer: ivra, or smat (heads alone).")] = "ivra",
    norm: Annotated[str, typer.Option(help="softmax, or sparsemax (needs raison[sparse]).")] = "softmax",
    selection: Annotated[str, typer.Option(help="Which coefficients are trained.")] = "feature,head,layer",
    over: Annotated[str, typer.Option(help="What is explained: units, or tokens (special ones too).")] = "units",
    prompt: Prompt = None,
    text: WholeText = None,
    pair: Annotated[str | None, typer.Option(help="The columns of a pair of texts: premise,hypothesis.")] = None,
    label: Annotated[str | None, typer.Option(help="The label's column.")] = None,
    delimiter: Delimiter = None,
    labels: Annotated[str, typer.Option(help="Names of numeric labels, in order, for a base model.")] = "",
    epochs: Annotated[int, typer.Option(min=1)] = 20,
    plain_epochs: Annotated[int, typer.Option(min=1, help="Epochs on the task alone, where --model is a base.")] = 3,
    batch_size: Annotated[int, typer.Option(min=1)] = 64,
    lr: Annotated[float, typer.Option(help="Learning rate of the first two epochs.")] = 3e-5,
    decay: Annotated[float, typer.Option(help="The rate is multiplied by it every two epochs.")] = 0.75,
    coefficient_rate: Annotated[float, typer.Option(help="How many times as fast the explainer learns.")] = 100.0,
    rank: Annotated[int, typer.Option(min=0, help="Train low-rank matrices; 0 trains all weights.")] = 0,
    student: Annotated[str, typer.Option(help="For sim: who learns from the explanations.")] = "minilm",
    student_share: Annotated[float, typer.Option(help="For sim: the share of the texts that it learns from.")] = 0.2,
    student_batch: Annotated[int, typer.Option(min=1, help="For sim: texts per step of it.")] = 8,
    student_rate: Annotated[float, typer.Option(help="For sim: its learning rate.")] = 0.05,
    roll_back: RollBack = False,
    texts: Annotated[int | None, typer.Option(min=1, help="Texts to learn from.")] = None,
    validation: Annotated[int | None, typer.Option(min=1, help="Texts to judge on.")] = None,
    checks: Annotated[int, typer.Option(min=1, help="Evaluations per epoch.")] = 1,
    longest: Annotated[int | None, typer.Option(min=1, help="Leave out texts of more words.")] = None,
    words: Words = None,
    window: Window = None,
    seed: Annotated[int, typer.Option(help="Decides the texts, their order and new weights.")] = 0,
    even_at_chance: EvenAtChance = False,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Go on without the broken lines of the data.")] = False,
    device: Device = None,
    dtype: Dtype = None,
) -> None:
    """Train a model to explain itself with its attention (IvRA); started again after a kill, it goes on.

    A classifier, or a model that finds answers, is trained further; a base model is first fine-tuned on the task. What
    is trained and saved is a copy: explain it with --method ivra.
    """
    # Only now: the help page must not wait for torch.
    from raison.training.recipes.ivra import train_ivra

    settings = _settings(context.params)
    wanted = Wanted(text, columns_of(pair), label, delimiter=delimiter)
    splits = [_shortened(read_split(s, wanted, skip_bad), longest, words, window) for s in (data, dev) if s]
    named = [_named(split, names_in(labels)) for split in splits]
    held_out = named[1] if dev else None
    started = _started(model, (named[0], held_out), out, settings, plain_epochs)
    explained = load_classifier(started, (prompt, False, False), device, dtype)
    card = train_ivra(explained, named[0], out, settings, held_out, command_line(context, "ivra"))
    typer.echo(f"{out}: on held-out texts {_kept(card.history['scores'])}{_learned(card.provenance)}")
    typer.echo(f"raison explain TEXT --model {out} --method {settings.form}")


def _kept(scores: Mapping[str, Sequence[float | None]]) -> str:
    """The scores of the moment that was kept: the first that was best by the criteria."""
    moments = [-inf if value is None else value for value in scores["criteria"]]
    kept = moments.index(max(moments))
    found = {name: values[kept] for name, values in scores.items() if name != "criteria"}
    return _listed(found)


def _learned(provenance: Mapping[str, Any]) -> str:
    """The accuracy before training, and F1 where there are classes."""
    found = provenance["f1"]
    classes = "" if found is None else f"; macro F1 {found['macro']:.4f} ({_listed(found['classes'])})"
    return f" (accuracy before {provenance['accuracy']['before']:.4f}){classes}"


def _listed(values: Mapping[str, float | None]) -> str:
    return ", ".join(f"{name} {'undefined' if value is None else f'{value:.4f}'}" for name, value in values.items())


def _settings(options: Mapping[str, Any]) -> "IvraSettings":
    """The options that say how to train: those that are called as the settings are, and a few that read otherwise."""
    from raison.training.recipes.ivra_settings import IvraSettings

    read = {
        "criteria": tuple(split_calls(options["criteria"])),
        "weights": _numbers(options["weights"]),
        "selection": names_in(options["selection"]),
        "above_chance": not options["even_at_chance"],
        "rank": options["rank"] or None,
        "learning_rate": options["lr"],
    }
    known = {field.name for field in fields(IvraSettings)}
    return IvraSettings(**{name: value for name, value in options.items() if name in known} | read)


def _started(
    model: str, splits: tuple[Dataset, Dataset | None], out: Path, settings: "IvraSettings", epochs: int
) -> str:
    """The model to train: a base is fine-tuned first, once."""
    from raison.models.loading import weights

    if model not in weights.names():
        return model
    from raison.training.recipes.ivra import fine_tune
    from raison.training.recipes.ivra_settings import FineTuneSettings

    folder = out / PLAIN
    plain = FineTuneSettings(
        epochs=epochs, rank=settings.rank, texts=settings.texts, validation=settings.validation, seed=settings.seed
    )
    fine_tune(model, splits[0], folder, plain, splits[1])
    return str(folder)


def _named(data: Dataset, labels: tuple[str, ...]) -> Dataset:
    return replace(data, labels=labels) if labels else data


def _shortened(data: Dataset, longest: int | None, words: int | None, window: int | None) -> Dataset:
    cut = data if window is None else around_answers(data, window)
    cut = cut if words is None else first_words(cut, words)
    return cut if longest is None else at_most(cut, longest)


def _numbers(option: str) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in option.split(",") if number.strip())
    except ValueError:
        raise InputError(f"cannot read --weights '{option}': give one number per criterion, such as 1,0.5.") from None
