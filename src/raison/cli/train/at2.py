"""raison train at2: the weights of a writer's attention heads, from ablations of sources."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raison.cli.options import from_records
from raison.cli.train.shared import command_line, tell_asked
from raison.core.errors import InputError
from raison.core.settings.fields import Setting
from raison.explaining.settings import DeviceSetting, DtypeSetting
from raison.studies.entries import StudyModel
from raison.training.settings.at2 import At2Settings

if TYPE_CHECKING:
    from raison.data.question_rows import QuestionRow


@dataclass(frozen=True, slots=True)
class At2Inputs:
    """The language model, and its questions."""

    name: Annotated[
        str, Setting("Demo name, Hub id or folder of a causal language model.", options=("--model", "-m"))
    ] = "demo/smollm2-answers"
    dtype: DtypeSetting = None
    device: DeviceSetting = None
    data: Annotated[
        Path | None,
        Setting("A .jsonl or .parquet file of questions with sources; SQuAD's by default.", options=("--data", "-d")),
    ] = None

    def rows(self, settings: At2Settings) -> "list[QuestionRow]":
        """The questions. Raises DataError."""
        from raison.data.questions import read_questions
        from raison.training.recipes.at2 import squad_rows

        return squad_rows(settings) if self.data is None else read_questions(self.data)


@from_records
def at2(
    context: typer.Context,
    inputs: At2Inputs,
    settings: At2Settings,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the weights; by default where --method at2 finds them.")
    ] = None,
) -> None:
    """Learn how well attention heads indicate the sources of an answer (AT2). If killed, run it again to resume."""
    # Imported here: the help page must not wait for torch.
    from raison.models.adapters.writing.writer import Writer
    from raison.models.derived.explainers import own_folder
    from raison.studies.plans import load_entry
    from raison.training.recipes.at2 import SQUAD, train_at2

    writer = load_entry(StudyModel(inputs.name, dtype=inputs.dtype, device=inputs.device))
    if not isinstance(writer, Writer):
        raise InputError(f"{inputs.name} is a classifier: at2 explains what a language model writes.")
    folder = out or own_folder(writer.name, "at2")
    named = SQUAD if inputs.data is None else inputs.data.name
    rows = inputs.rows(settings)
    tell_asked(rows[: settings.questions], settings.held_out)
    card = train_at2(writer, rows, folder, settings, named, command_line(context, "at2"))
    correlation = card.provenance["correlation"]
    typer.echo(
        f"{folder}: correlation with ablations on held-out questions {correlation['held_out']:.2f} "
        f"(equal weights {correlation['held_out_equal_weights']:.2f})"
    )
