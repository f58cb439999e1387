"""Data sets by name, from files and from the Hub, with their rationales."""

from pathlib import Path

from raison.core.errors import DataError
from raison.data.columns import Column, Wanted
from raison.data.dataset import BrokenLine, Dataset, Row
from raison.data.files import KINDS, load_file
from raison.data.known_features import known_features
from raison.data.named import NamedSet, load_named, name_of_folder, named
from raison.data.questions import holds_questions, load_questions
from raison.data.windows import around_answers
from raison.jobs.store import RecordStore, Stored

__all__ = [
    "BrokenLine",
    "Column",
    "Dataset",
    "NamedSet",
    "RecordStore",
    "Row",
    "Stored",
    "Wanted",
    "around_answers",
    "known_features",
    "load",
    "load_file",
    "named",
]


def load(
    source: str | Path,
    wanted: Wanted | None = None,
    *,
    split: str = "test",
    limit: int | None = None,
    skip_bad: bool = False,
    encoding: str = "utf-8",
    folder: str | Path | None = None,
) -> Dataset:
    """A data set by its name ("sst2"; `named()` lists them), from its folder, from a file, or by its id from the Hub.

    A named data set is read from `folder`, otherwise from its place under $RAISON_DATA or ../shared/data, otherwise
    from the Hub. A path to a folder with a data set's name is recognised (".../eraser_movies"). A source that has a
    file's ending, or that exists, is a file (tsv, csv, txt, jsonl, parquet). `wanted` names the columns of a file or a
    Hub data set if they cannot be inferred from the data, and `encoding` is for files; a named data set needs neither.
    A .jsonl or .parquet file of questions with sources has them in its rows (`Dataset.questions`), for language models
    that write.
    `limit` takes the first rows. Raises DataError and UnknownNameError; see `load_named`, `load_file` and `load_hub`.
    """
    path = Path(source)
    if str(source) in named() or path.is_dir():
        name, place = (str(source), folder) if str(source) in named() else (name_of_folder(path), folder or path)
        if wanted not in (None, Wanted()):
            raise DataError(f"'{name}' is a named data set with known columns: leave out the column names.")
        return load_named(name, split, None if place is None else Path(place), limit, skip_bad)
    if folder is not None:
        raise DataError(
            f"'{source}' is not a named data set ({', '.join(named())}), so folder does not apply: leave it out."
        )
    if path.suffix.lower() in KINDS or path.exists():
        columns = wanted or Wanted()
        if columns == Wanted() and holds_questions(path, encoding):
            return load_questions(path, limit, skip_bad=skip_bad, encoding=encoding)
        return load_file(
            path,
            columns.text,
            columns.pair,
            columns.label,
            rationale=columns.rationale,
            contrast=columns.contrast,
            delimiter=columns.delimiter,
            limit=limit,
            skip_bad=skip_bad,
            encoding=encoding,
        )
    # Only now: most users never read from the Hub.
    from raison.data.hub import load_hub

    return load_hub(str(source), split, wanted, limit=limit, skip_bad=skip_bad)
