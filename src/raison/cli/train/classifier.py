"""raison train classifier: fine-tuning of a text classifier."""

from dataclasses import dataclass
from typing import Annotated

import typer

from raison.cli.options import from_records
from raison.cli.readable_texts import read
from raison.cli.train.shared import (
    Adapter,
    KnownFeatureOptions,
    SkipBadSetting,
    TrainSetting,
    command_line,
    tell_shared,
)
from raison.core.settings.fields import Setting
from raison.data import Wanted
from raison.data.columns import EncodingSetting
from raison.training.settings.classifier import ClassifierSettings


@dataclass(frozen=True, slots=True)
class SplitData:
    """Data to train, test and develop with."""

    train: TrainSetting
    test: Annotated[str, Setting("Test data, used once, after training.")]
    dev: Annotated[str | None, Setting("Development data: scored after each epoch.")] = None
    encoding: EncodingSetting = "utf-8"
    skip_bad: SkipBadSetting = False


@from_records
def classifier(
    context: typer.Context,
    data: SplitData,
    adapter: Adapter,
    wanted: Wanted,
    settings: ClassifierSettings,
    features: KnownFeatureOptions,
) -> None:
    """Fine-tune a text classifier with low-rank adapters. If killed, run it again to resume."""
    # Imported here: the help page must not wait for torch.
    from raison.training.recipes.card import described
    from raison.training.recipes.classifier import Splits, train_classifier

    sources = [source for source in (data.train, data.test, data.dev) if source]
    splits = [features.of(read(source, wanted, skip_bad=data.skip_bad, encoding=data.encoding)) for source in sources]
    for judged in splits[1:]:
        tell_shared(splits[0], judged)
    card = train_classifier(adapter.base, Splits(*splits), adapter.out, settings, command_line(context, "classifier"))
    scores = "; ".join(f"{name} {described(card, name)}" for name in card["accuracy"])
    typer.echo(f"{adapter.out}: {scores}")
