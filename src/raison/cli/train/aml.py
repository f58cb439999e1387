"""raison train aml: an explainer by attributive masking."""

from pathlib import Path
from typing import Annotated

import typer

from raison.cli.options import TASKS, But, Model, from_records
from raison.cli.train.shared import LearnedData, command_line, tell_known
from raison.data import Wanted
from raison.data.lengths import Lengths
from raison.training.settings.aml import AmlSettings


@from_records
def aml(
    context: typer.Context,
    texts: Annotated[LearnedData, But(without=("labels",))],
    entry: Annotated[Model, But(without=TASKS)],
    wanted: Annotated[Wanted, But(without=("pair", "label"))],
    lengths: Annotated[Lengths, But(without=("answer_window",))],
    settings: Annotated[AmlSettings, But(defaults={"above_chance": True})],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the explainer; by default where --method aml finds it.")
    ] = None,
) -> None:
    """Train an explainer of a model by attributive masking (AML). If killed, run it again to resume.

    First the weights of the losses are searched with the metrics on held-out texts. Then the attribution model is
    trained.
    """
    # Imported here: the help page must not wait for torch.
    from raison.models.derived.explainers import own_folder
    from raison.studies.plans import load_named_model
    from raison.training.recipes.aml import train_aml

    data, dev = texts.read(wanted, lengths)
    model = load_named_model(entry)
    tell_known(model.name, data, dev)
    folder = out or own_folder(model.name, "aml")
    card = train_aml(model, data, folder, settings, dev, command_line(context, "aml"))
    reached = ", ".join(f"{metric} {goal.validation:.4f}" for metric, goal in card.goals.items())
    typer.echo(f"{folder}: on {settings.validation} held-out texts {reached}")
