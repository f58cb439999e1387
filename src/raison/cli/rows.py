"""Texts of a data set that the model can read; the others are named."""

import typer

from raison.core.errors import DataError, InputError
from raison.core.model import LanguageModel
from raison.core.unit import Text
from raison.data import load as load_data


def readable_texts(
    model: LanguageModel,
    source: str,
    columns: tuple[str | None, str | None],
    limit: int | None,
    choices: tuple[bool, bool],
) -> tuple[list[Text], str]:
    """The texts and the data set's name. `choices` are (skip_bad, truncate).

    Rows that cannot be read raise DataError, or are named on stderr and left out with skip_bad.
    """
    skip_bad, truncate = choices
    dataset = load_data(source, text=columns[0], pair=columns[1], limit=limit, skip_bad=skip_bad)
    for line in dataset.broken:
        typer.echo(f"raison: left out {line}", err=True)
    texts: list[Text] = []
    for row in dataset.rows:
        try:
            model.encode([row.text], "token", truncate)
        except InputError as error:
            message = f"row {row.number} of {source}: {error}"
            if not skip_bad:
                raise DataError(f"{message} --skip-bad goes on without such rows.") from None
            typer.echo(f"raison: left out {message}", err=True)
            continue
        texts.append(row.text)
    if not texts:
        raise DataError(f"no row of {source} can be used.")
    return texts, dataset.name
