"""raison train amortized-shap: an explainer that predicts Shapley values in one pass."""

from pathlib import Path
from typing import Annotated

import typer

from raison.cli.options import TASKS, But, Model, from_records
from raison.cli.train.shared import LearnedData, command_line, tell_known
from raison.data import Wanted
from raison.data.lengths import Lengths
from raison.training.settings.amortized_shap import AmortizedShapSettings


@from_records
def amortized_shap(
    context: typer.Context,
    texts: Annotated[LearnedData, But(without=("labels",))],
    entry: Annotated[Model, But(without=TASKS)],
    wanted: Annotated[Wanted, But(without=("pair", "label"))],
    lengths: Annotated[Lengths, But(without=("answer_window",))],
    settings: AmortizedShapSettings,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the explainer; by default where --method amortized_shap finds it.")
    ] = None,
    values: Annotated[
        Path | None,
        typer.Option(help="Take over the Shapley values of another training, from its folder: for another rank, say."),
    ] = None,
) -> None:
    """Train an explainer that predicts Shapley values in one pass. If killed, run it again to resume.

    First the values of every text are estimated with many passes of the model. Then the explainer learns them.
    """
    # Imported here: the help page must not wait for torch.
    from raison.models.derived.amortized import KIND
    from raison.models.derived.explainers import own_folder
    from raison.studies.plans import load_named_model
    from raison.training.recipes.amortized_shap import train_amortized_shap

    data, dev = texts.read(wanted, lengths)
    model = load_named_model(entry)
    tell_known(model.name, data, dev)
    folder = out or own_folder(model.name, KIND)
    command = command_line(context, "amortized-shap")
    card = train_amortized_shap(model, data, folder, settings, dev, command, values)
    reached = card.provenance["correlation"]["held_out"]
    typer.echo(f"{folder}: correlation with the values of {settings.validation} held-out texts {reached:.3f}")
