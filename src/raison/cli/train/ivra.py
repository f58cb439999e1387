"""raison train ivra: training of a model that explains itself."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Annotated, Any

import typer

from raison.cli.options import TASKS, But, Model, from_records
from raison.cli.train.shared import LearnedData, command_line, tell_known
from raison.core.settings.fields import REQUIRED
from raison.data import Wanted
from raison.data.lengths import Lengths
from raison.training.settings.ivra import FineTuneSettings, IvraSettings

PLAIN = "plain"
"""The subfolder for a base model that is fine-tuned first."""


@from_records
def ivra(
    context: typer.Context,
    texts: LearnedData,
    out: Annotated[Path, typer.Option(help="Folder for the trained model and its explainer.")],
    entry: Annotated[Model, But(without=TASKS)],
    wanted: Wanted,
    lengths: Lengths,
    settings: Annotated[IvraSettings, But(defaults={"criteria": REQUIRED, "above_chance": True})],
    plain_epochs: Annotated[int, typer.Option(min=1, help="Epochs on the task alone, if --model is a base.")] = 3,
) -> None:
    """Train a model to explain itself with its attention (IvRA). If killed, run it again to resume.

    A classifier or a question answering model is trained further; a base model is first fine-tuned on the task. The
    trained model is saved as a copy; explain it with --method ivra.
    """
    # Imported here: the help page must not wait for torch.
    from raison.models.loading.ready_made import base_weights
    from raison.studies.plans import load_named_model
    from raison.training.recipes.ivra import fine_tune, train_ivra

    data, dev = texts.read(wanted, lengths)
    if entry.name in base_weights.names():
        plain = FineTuneSettings(
            epochs=plain_epochs,
            rank=settings.rank,
            texts=settings.texts,
            validation=settings.validation,
            seed=settings.seed,
        )
        fine_tune(entry.name, data, out / PLAIN, plain, dev)
        entry = replace(entry, name=str(out / PLAIN))
    model = load_named_model(entry)
    tell_known(model.name, data, dev)
    card = train_ivra(model, data, out, settings, dev, command_line(context, "ivra"))
    typer.echo(f"{out}: on held-out texts {_kept(card.history['scores'])}{_learned(card.provenance)}")
    typer.echo(f"raison explain TEXT --model {out} --method {settings.form}")


def _kept(scores: Mapping[str, Sequence[float | None]]) -> str:
    """The scores of the kept state, the first with the best criteria."""
    moments = [-inf if value is None else value for value in scores["criteria"]]
    kept = moments.index(max(moments))
    reached = {name: values[kept] for name, values in scores.items() if name != "criteria"}
    return _listed(reached)


def _learned(provenance: Mapping[str, Any]) -> str:
    """The accuracy before training, and F1 if there are classes."""
    f1 = provenance["f1"]
    classes = "" if f1 is None else f"; macro F1 {f1['macro']:.4f} ({_listed(f1['classes'])})"
    return f" (accuracy before {provenance['accuracy']['before']:.4f}){classes}"


def _listed(values: Mapping[str, float | None]) -> str:
    return ", ".join(f"{name} {'undefined' if value is None else f'{value:.4f}'}" for name, value in values.items())
