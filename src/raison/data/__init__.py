"""Data sets from files and from the Hub, and the store of a study's records."""

from pathlib import Path

from raison.data.columns import Column, Wanted
from raison.data.dataset import BrokenLine, Dataset, Row
from raison.data.files import KINDS, load_file
from raison.data.records import RecordStore, Stored

__all__ = ["BrokenLine", "Column", "Dataset", "RecordStore", "Row", "Stored", "Wanted", "load", "load_file"]


def load(
    source: str | Path,
    wanted: Wanted | None = None,
    *,
    split: str = "test",
    limit: int | None = None,
    skip_bad: bool = False,
    encoding: str = "utf-8",
) -> Dataset:
    """A data set from a file (tsv, csv, txt, jsonl, parquet) or, by its id, from the Hub.

    `wanted` names the columns where they cannot be told from the data; `split` is for the Hub, `encoding` for files.
    A source with a file's ending, or that exists, is a file. Raises DataError; see `load_file` and `load_hub`.
    """
    path = Path(source)
    if path.suffix.lower() in KINDS or path.exists():
        columns = wanted or Wanted()
        return load_file(
            path, columns.text, columns.pair, columns.label, limit=limit, skip_bad=skip_bad, encoding=encoding
        )
    # Only now: most users never read from the Hub.
    from raison.data.hub import load_hub

    return load_hub(str(source), split, wanted, limit=limit, skip_bad=skip_bad)
