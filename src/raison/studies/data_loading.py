"""Loads the rows that a study uses."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from raison.core.errors import DataError, RaisonError
from raison.data import Dataset, known_features
from raison.data import load as load_data
from raison.data.edits import edits_as_truth
from raison.studies.entries import KnownFeatures, StudyData


def load_rows(entry: StudyData, limit: int | None) -> Dataset:
    """A study's data, limited to `limit` of the rows that the study asks for. Raises RaisonError."""
    return _taken(entry, _read(entry, limit), limit)


def load_some_and_all(entry: StudyData, limit: int) -> tuple[Dataset, Dataset | None]:
    """What `load_rows` gives for the limit, and all rows that the study asks for; None if those cannot be used.

    Rows that are drawn, or chosen by their length or by edits, are read once for both. Raises RaisonError.
    """
    read = _read(entry, limit)
    some = _taken(entry, read, limit)
    try:
        same = _needs_all(entry) or _first(entry, limit) == entry.limit
        return some, _taken(entry, read if same else _read(entry, None), None)
    except RaisonError:
        return some, None


def _needs_all(entry: StudyData) -> bool:
    """Whether the rows that are taken depend on all rows."""
    lengths = entry.lengths
    chosen = (entry.sample, lengths.longest, lengths.answer_window, entry.edited_words)
    return any(one is not None for one in chosen)


def _first(entry: StudyData, limit: int | None) -> int | None:
    return min((count for count in (entry.limit, limit) if count is not None), default=None)


def _read(entry: StudyData, limit: int | None) -> Dataset:
    """The rows with their lengths; of those that are neither drawn nor chosen, the first ones."""
    most = None if _needs_all(entry) else _first(entry, limit)
    data = load_data(
        entry.source,
        entry.wanted,
        split=entry.split,
        limit=most,
        skip_bad=entry.skip_bad,
        encoding=entry.encoding,
    )
    if entry.edited_words is not None:
        data = edits_as_truth(data, entry.edited_words)
    return entry.lengths.of(data)


def _taken(entry: StudyData, data: Dataset, limit: int | None) -> Dataset:
    """The rows that the study takes, with known features if it asks for them."""
    if entry.sample is not None:
        # Rows are drawn before the limit of the call applies, so that fewer rows belong to the same draw.
        count = min(entry.limit or len(data), len(data))
        places = Random(f"sample {entry.sample}").sample(range(len(data)), count)[:limit]
        name = f"{data.name}, {count} drawn with seed {entry.sample}"
        data = replace(data, name=name, rows=tuple(data.rows[place] for place in sorted(places)))
    elif _needs_all(entry):
        data = replace(data, rows=data.rows[: _first(entry, limit)])
    if not data.rows:
        raise DataError(f"{data.name} has no usable row.")
    return data if entry.known_features is None else with_features(data, entry.known_features)


def with_features(data: Dataset, words: KnownFeatures) -> Dataset:
    """The data with known features. Raises InputError if that is impossible."""
    return known_features(data, words.words, position=words.position, correlation=words.correlation, seed=words.seed)


def load_all(
    entries: Mapping[str, StudyData], keys: Sequence[str], limit: int | None
) -> tuple[dict[str, Dataset], list[str]]:
    """The data of these keys, and the reasons why some cannot be loaded."""
    data, reasons = {}, []
    for key in keys:
        try:
            data[key] = load_rows(entries[key], limit)
        except RaisonError as error:
            reasons.append(f"[data.{key}]: {error}")
    return data, reasons
