"""Texts of a data set that the model can read; the others are reported."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from raison.core.errors import DataError, InputError
from raison.core.inputs.parts import Given
from raison.core.inputs.rationale import Rationale
from raison.core.results.printable import printable
from raison.core.settings.fields import Setting
from raison.core.targets.choices import TargetSpec
from raison.data import Column, Dataset, Row, Wanted, named
from raison.data import load as load_data
from raison.data.columns import DelimiterSetting, EncodingSetting

if TYPE_CHECKING:
    from raison.core.model import LanguageModel
    from raison.explaining.answers import Answers
    from raison.explaining.settings import Settings
    from raison.models.adapters.writing.writer import Writer


@dataclass(frozen=True, slots=True)
class TextSource:
    """The texts of a command."""

    data: Annotated[
        str,
        Setting(
            "A tsv, csv, jsonl or parquet file, a split of a named data set (sst2:dev), or a data set's Hub id. "
            "Human rationales: a jsonl column rationale, a list of [start, end] in characters. Parts of texts to "
            "score: a jsonl column units, with spans like these or an object of named spans. Rankings: columns "
            "query, document and other_document.",
            options=("--data", "-d"),
        ),
    ]
    limit: Annotated[int | None, Setting("Use only the first N rows.", least=1)] = None
    text_column: Annotated[Column | None, Setting("Column of the text: its name, or its number from 0.")] = None
    pair_column: Annotated[Column | None, Setting("Column of the second text of a pair.")] = None
    contrast_column: Annotated[
        Column | None,
        Setting("Column of the class that each text's explanation contrasts with the target."),
    ] = None
    delimiter: DelimiterSetting = None
    split: Annotated[str, Setting("Split of a data set from the Hub.")] = "test"
    encoding: EncodingSetting = "utf-8"
    skip_bad: Annotated[bool, Setting("Skip rows that cannot be read, and report them.")] = False
    template: Annotated[
        str | None,
        Setting(
            "Prompt template for questions with sources, for generative models: plain, chat, a TOML file, or a text "
            "with {sources} and {question}."
        ),
    ] = None

    @property
    def wanted(self) -> Wanted:
        """The columns. Raises InputError."""
        if self.pair_column is None:
            return Wanted(text=self.text_column, delimiter=self.delimiter, contrast=self.contrast_column)
        if self.text_column is None:
            raise InputError("--pair-column needs --text-column: name both texts of the pair.")
        pair = (self.text_column, self.pair_column)
        return Wanted(pair=pair, delimiter=self.delimiter, contrast=self.contrast_column)


@dataclass(frozen=True, slots=True)
class JudgedRows:
    """The texts to evaluate, from the data set `name`, as compare accepts them.

    `rationales` are given if every text has them. With a column of contrasts, `target` is a pair for each text.
    """

    texts: "list[Given] | Answers"
    rationales: list[tuple[Rationale, ...]] | None
    name: str
    target: TargetSpec


def judged_rows(model: "LanguageModel | Writer", source: TextSource, settings: "Settings") -> JudgedRows:
    """The texts of a command that evaluates; for a generative language model, questions with their answers.

    Raises DataError, InputError.
    """
    from raison.explaining.answers import answers_of
    from raison.models.adapters.writing.writer import Writer

    if not isinstance(model, Writer):
        return _readable_rows(model, source, settings)
    if source.wanted != Wanted():
        raise InputError(
            "questions always have the columns question, sources, answer and gold: leave the column options out."
        )
    data = load_data(
        source.data, split=source.split, limit=source.limit, skip_bad=source.skip_bad, encoding=source.encoding
    )
    _tell_left_out(data, source)
    answers = answers_of(model, data, source.template)
    return JudgedRows(answers, None, data.name, settings.target)


def _readable_rows(model: "LanguageModel", source: TextSource, settings: "Settings") -> JudgedRows:
    """The texts that the model can read, cut if the settings allow it, with the contrasts of their column.

    Rows that cannot be read raise DataError; with skip_bad they are named on stderr and skipped.
    """
    from raison.explaining.batch import prepare
    from raison.explaining.given_texts import against
    from raison.explaining.ranking import fitting

    if source.template is not None:
        raise InputError("--template applies to generative language models only: leave it out.")
    dataset = read(source.data, source.wanted, source.split, source.skip_bad, source.limit, source.encoding)
    _tell_left_out(dataset, source)
    rows: list[Row] = []
    for row in dataset.rows:
        try:
            reader = fitting(model, [row.text])
            if row.contrast is None:
                reader.encode([row.text], "token", settings.truncate)
            else:
                of_row = replace(settings, unit="token", target=[against(reader, settings.target, row.contrast)])
                prepare(reader, [row.text], of_row)
        except InputError as error:
            message = f"row {row.number} of {source.data}: {error}"
            if not source.skip_bad:
                raise DataError(f"{message} --skip-bad skips such rows.") from None
            typer.echo(printable(f"raison: left out {message}"), err=True)
            continue
        rows.append(row)
    if not rows:
        raise DataError(f"no row of {source.data} can be used.")
    rationales = [row.rationales for row in rows] if all(row.rationales for row in rows) else None
    target = settings.target
    if source.contrast_column is not None:
        target = [against(model, settings.target, row.contrast) for row in rows if row.contrast is not None]
    return JudgedRows([row.given for row in rows], rationales, dataset.name, target)


def _tell_left_out(dataset: Dataset, source: TextSource) -> None:
    for line in dataset.broken:
        typer.echo(printable(f"raison: left out line {line.number} of {source.data}: {line.reason}"), err=True)


def read(
    source: str,
    wanted: Wanted,
    split: str = "train",
    skip_bad: bool = False,
    limit: int | None = None,
    encoding: str = "utf-8",
) -> Dataset:
    """A file, a data set of the Hub, or SET:SPLIT of a named one; stderr names the columns of text and label."""
    # A Hub id has its configuration after the colon.
    name, _, named_split = source.partition(":")
    place = (name, named_split or split) if name in named() else (source, split)
    data = load_data(place[0], wanted, split=place[1], limit=limit, skip_bad=skip_bad, encoding=encoding)
    tell_columns(source, data.taken)
    return data


def tell_columns(source: str, taken: str) -> None:
    """Say on stderr which columns of a source are used, if they were not known before; names may be hostile."""
    if taken:
        typer.echo(printable(f"raison: {source}: {taken}"), err=True)
