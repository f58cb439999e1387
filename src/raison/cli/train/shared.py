"""Shared by the training commands: the training data, and the record of the command."""

import os
import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from raison.cli.readable_texts import read
from raison.core.settings.fields import Setting
from raison.data import Dataset, Wanted
from raison.data import known_features as add_known_features
from raison.data.columns import EncodingSetting
from raison.data.dataset import numbered
from raison.data.lengths import Lengths
from raison.data.question_rows import QuestionRow

TrainSetting = Annotated[str, Setting("Training data: a tsv, csv, txt, jsonl or parquet file, or SET:SPLIT.")]
SkipBadSetting = Annotated[bool, Setting("Skip broken lines of the data.")]


@dataclass(frozen=True, slots=True)
class Adapter:
    """The adapter that a training makes, and its base."""

    out: Annotated[Path, Setting("Folder for the adapter and its card.")]
    base: Annotated[str, Setting("Base model: a known name or a folder.")] = "minilm"


@dataclass(frozen=True, slots=True)
class KnownFeatureOptions:
    """Words that mark randomly drawn labels; none for the data's own labels."""

    known_features: Annotated[
        tuple[str, ...], Setting("Draw labels at random and append the label's word: negative,positive.")
    ] = ()
    known_correlation: Annotated[float, Setting("Share of rows that get the word of their label.")] = 1.0

    def of(self, data: Dataset) -> Dataset:
        """The data with these words, if there are any. Raises InputError."""
        if not self.known_features:
            return data
        return add_known_features(data, self.known_features, correlation=self.known_correlation)


@dataclass(frozen=True, slots=True)
class LearnedData:
    """Training texts, and held-out texts."""

    data: Annotated[str, Setting("Training texts: a file, or SET:SPLIT.", options=("--data", "-d"))]
    dev: Annotated[str | None, Setting("Held-out texts for evaluation; by default a part of the data.")] = None
    labels: Annotated[tuple[str, ...], Setting("Names of numeric labels, in order, for a base model.")] = ()
    encoding: EncodingSetting = "utf-8"
    skip_bad: SkipBadSetting = False

    def read(self, wanted: Wanted, lengths: Lengths) -> tuple[Dataset, Dataset | None]:
        """Both data sets with texts of these lengths, the second only if given. Raises DataError."""

        def of(source: str) -> Dataset:
            return read(source, wanted, skip_bad=self.skip_bad, encoding=self.encoding)

        dev = None if self.dev is None else of(self.dev)
        data = of(self.data).counted_with(dev)
        learned = lengths.of(numbered(data, self.labels))
        held_out = None if dev is None else lengths.of(numbered(dev.counted_with(data), self.labels))
        tell_shared(learned, held_out)
        return learned, held_out


def tell_known(model: str, data: Dataset, dev: Dataset | None) -> None:
    """Say on stderr if the held-out texts are of the data that the explained model itself was trained on."""
    # Imported here: the help page must not wait for torch.
    from raison.training.preparation.data_leakage import known_to

    judged = data if dev is None else dev
    if known_to(model, judged):
        typer.echo(
            f"raison: {model} itself was trained on {judged.name}: the held-out texts may be among its training texts, "
            "and scores on them can differ from those on new ones. Give texts that it was not trained on (--dev).",
            err=True,
        )


def tell_shared(learned: Dataset, judged: Dataset | None) -> None:
    """Say on stderr how many held-out texts may be known from training: those of `judged`, or doubles in `learned`."""
    counts = Counter(learned.texts)
    if judged is not None:
        shared = sum(text in counts for text in judged.texts)
        told = f"{shared} of the {len(judged)} texts of {judged.name} are also among the training texts"
    else:
        shared = sum(count for count in counts.values() if count > 1)
        told = f"{shared} of the {len(learned)} texts of {learned.name} occur more than once: some may be on both sides"
    if shared:
        typer.echo(f"raison: {told}; scores on texts that were trained on say little about new ones.", err=True)


def tell_asked(rows: Sequence[QuestionRow], held_out: int) -> None:
    """Say on stderr how many of the last questions, which are held out, are also asked of the same sources before."""
    asked = [(repr(row.question), frozenset((row.sources or {}).values())) for row in rows]
    border = max(0, len(asked) - held_out)
    learned = set(asked[:border])
    if shared := sum(one in learned for one in asked[border:]):
        typer.echo(
            f"raison: {shared} of the {len(asked) - border} held-out questions are also among the training questions, "
            "with the same sources; scores on questions that were trained on say little about new ones.",
            err=True,
        )


def command_line(context: typer.Context, command: str) -> str:
    """The command as typed, with paths relative to the current folder, so that a card contains no folders of a
    machine."""
    words = ["raison", "train", command]
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[parameter.name or ""]
        if isinstance(value, list):
            value = ",".join(value)
        if value is True:
            words.append(parameter.opts[0])
            continue
        is_path = isinstance(value, Path) or (isinstance(value, str) and os.path.exists(value))
        words += [parameter.opts[0], os.path.relpath(value) if is_path else str(value)]
    return shlex.join(words)
