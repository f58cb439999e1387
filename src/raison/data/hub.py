"""Data sets from the Hugging Face Hub, through the `datasets` library."""

import difflib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from raison.core.errors import DataError, first_line
from raison.data.columns import Column, Wanted
from raison.data.dataset import Dataset
from raison.data.lines import LineRecord
from raison.data.named import named
from raison.data.rows import rows_from
from raison.hub import patiently

if TYPE_CHECKING:
    from datasets import Dataset as HubDataset


def load_hub(
    name: str,
    split: str = "test",
    wanted: Wanted | None = None,
    *,
    limit: int | None = None,
    skip_bad: bool = False,
) -> Dataset:
    """Read one split of a Hub data set: "owner/name", or "owner/name:configuration".

    A column with spans is read as in a file (see `load_file`). Needs the extra `data`. Raises DataError if the
    library, the data set, the split or a column is missing; blank texts are broken rows, as in a file.
    """
    data = _download(name, split)
    read = rows_from(_records(data), f"{name}, split {split}", wanted or Wanted(), limit, skip_bad)
    labels = _label_names(data, read.label)
    return Dataset(name, read.rows, read.broken, labels=labels, taken=read.taken, numbers=read.numbers)


def hub_records(name: str, split: str) -> Iterator[LineRecord]:
    """The rows of a split, read from disk one at a time. Raises DataError as `load_hub` does."""
    return _records(_download(name, split))


def _records(data: "HubDataset") -> Iterator[LineRecord]:
    columns = data.column_names
    return (LineRecord(number, {column: row[column] for column in columns}) for number, row in enumerate(data))


def _download(name: str, split: str) -> "HubDataset":
    try:
        import datasets
        from datasets.exceptions import DatasetsError
        from huggingface_hub.errors import HfHubHTTPError
    except ImportError:
        raise DataError(f"reading '{name}' from the Hub needs datasets: pip install 'raison[data]'.") from None
    # The first base of the Hub's error is that of its HTTP client, which differs between its versions.
    others = (DatasetsError, OSError, RuntimeError, ValueError)
    failures: tuple[type[BaseException], ...] = (*HfHubHTTPError.__bases__, *others)
    path, _, configuration = name.partition(":")
    if Path(path).exists() or (path.isidentifier() and find_spec(f"datasets.packaged_modules.{path}")):
        raise DataError(
            f"the datasets library reads '{name}' from files of this machine, and not from the Hub: name the file."
        )
    with patiently() as silent:
        try:
            return datasets.load_dataset(path, configuration or None, split=split)
        except failures as error:
            reason = silent or first_line(error).rstrip(".")
            meant = _named_like(path)
            hint = f"Did you mean '{meant}', which needs no Hub? " if meant else ""
            raise DataError(
                f"cannot read the data set '{name}' (split {split}) from the Hub: {reason}. {hint}"
                f"Without a network connection, download it elsewhere and give the file."
            ) from error


def _named_like(name: str) -> str:
    """A named data set with nearly this name; empty if there is none."""
    plain = {"".join(filter(str.isalnum, known)).lower(): known for known in named()}
    close = difflib.get_close_matches("".join(filter(str.isalnum, name)).lower(), plain, n=1, cutoff=0.8)
    return plain[close[0]] if close else ""


def _label_names(data: "HubDataset", column: Column | None) -> tuple[str, ...]:
    feature = data.features.get(data.column_names[column] if isinstance(column, int) else column)
    names = getattr(feature, "names", None)
    return tuple(names) if names else ()
