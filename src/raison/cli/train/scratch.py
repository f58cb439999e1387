"""raison train scratch: a small classifier from scratch, or all weights of a base."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from raison.cli.options import But, from_records
from raison.cli.readable_texts import read
from raison.cli.train.shared import KnownFeatureOptions, SkipBadSetting, TrainSetting, command_line, tell_shared
from raison.core.settings.fields import Setting
from raison.data import Dataset, Wanted
from raison.data.columns import EncodingSetting
from raison.data.dataset import numbered
from raison.training.settings.classifier import LabelsSetting
from raison.training.settings.scratch import ScratchSettings


@dataclass(frozen=True, slots=True)
class HeldOutData:
    """Texts to train with, and held-out ones."""

    train: TrainSetting
    dev: Annotated[str, Setting("Held-out texts that select the best epoch and give the accuracy.")]
    labels: LabelsSetting = ()
    encoding: EncodingSetting = "utf-8"
    skip_bad: SkipBadSetting = False

    def read(self, wanted: Wanted) -> tuple[Dataset, Dataset]:
        """Both data sets. Raises DataError."""

        def of(source: str) -> Dataset:
            return read(source, wanted, skip_bad=self.skip_bad, encoding=self.encoding)

        return of(self.train), of(self.dev)


@from_records
def scratch(
    context: typer.Context,
    data: HeldOutData,
    out: Annotated[Path, typer.Option(help="Folder for the whole model, its tokenizer and its card.")],
    wanted: Wanted,
    settings: ScratchSettings,
    features: Annotated[KnownFeatureOptions, But(without=("known_correlation",))],
) -> None:
    """Train a whole classifier. If killed, run it again to resume from its last epoch."""
    # Imported here: the help page must not wait for torch.
    from raison.training.recipes.card import described
    from raison.training.recipes.scratch import train_scratch

    names = () if features.known_features else data.labels
    train, dev = data.read(wanted)
    learned, held_out = (
        numbered(features.of(one.counted_with(other)), names) for one, other in ((train, dev), (dev, train))
    )
    tell_shared(learned, held_out)
    card = train_scratch(learned, held_out, out, settings, command_line(context, "scratch"))
    typer.echo(f"{out}: held_out {described(card, 'held_out')}")
