"""Texts of a data set that the model can read; the others are named."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from raison.core.errors import DataError, InputError
from raison.core.rationale import Rationale
from raison.core.unit import Text
from raison.data import Dataset, Row, Wanted, named
from raison.data import load as load_data

if TYPE_CHECKING:
    from raison.core.model import LanguageModel


@dataclass(frozen=True, slots=True)
class Source:
    """What the options of a command say about its data."""

    data: str
    text_column: str | None
    pair_column: str | None
    split: str
    limit: int | None
    skip_bad: bool
    truncate: bool
    delimiter: str | None = None


@dataclass(frozen=True, slots=True)
class Readable:
    """Texts that a model can read, of the data set `name`; rationales where every text has them."""

    texts: list[Text]
    rationales: list[tuple[Rationale, ...]] | None
    name: str


def readable_texts(model: "LanguageModel", source: Source) -> Readable:
    """The texts that the model can read.

    Rows that cannot be read raise DataError, or are named on stderr and left out with skip_bad.
    """
    name, _, own = source.data.partition(":")
    # SET:SPLIT of a named data set, as everywhere on the command line; a Hub id has its configuration there.
    data, split = (name, own) if own and name in named() else (source.data, source.split)
    dataset = load_data(data, _wanted(source), split=split, limit=source.limit, skip_bad=source.skip_bad)
    say_taken(source.data, dataset)
    for line in dataset.broken:
        typer.echo(f"raison: left out line {line.number} of {source.data}: {line.reason}", err=True)
    rows: list[Row] = []
    for row in dataset.rows:
        try:
            model.encode([row.text], "token", source.truncate)
        except InputError as error:
            message = f"row {row.number} of {source.data}: {error}"
            if not source.skip_bad:
                raise DataError(f"{message} --skip-bad goes on without such rows.") from None
            typer.echo(f"raison: left out {message}", err=True)
            continue
        rows.append(row)
    if not rows:
        raise DataError(f"no row of {source.data} can be used.")
    rationales = [row.rationales for row in rows] if all(row.rationales for row in rows) else None
    return Readable([row.text for row in rows], rationales, dataset.name)


def say_taken(source: str, data: Dataset) -> None:
    """One line on stderr: what of a file or a Hub data set was taken as text and as label."""
    if data.taken:
        typer.echo(f"raison: {source}: {data.taken}", err=True)


def _wanted(source: Source) -> Wanted:
    text, pair = (_column(option) for option in (source.text_column, source.pair_column))
    if pair is None:
        return Wanted(text=text, delimiter=source.delimiter)
    if text is None:
        raise InputError("--pair-column needs --text-column: name both texts of the pair.")
    return Wanted(pair=(text, pair), delimiter=source.delimiter)


def _column(option: str | None) -> str | int | None:
    return int(option) if option is not None and option.isdigit() else option
