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
    first = min((count for count in (entry.limit, limit) if count is not None), default=None)
    drawn = entry.sample is not None
    lengths = entry.lengths
    whole = drawn or any(one is not None for one in (lengths.longest, lengths.answer_window, entry.edited_words))
    most = None if whole else first
    data = load_data(entry.source, entry.wanted, split=entry.split, limit=most, encoding=entry.encoding)
    if entry.edited_words is not None:
        data = edits_as_truth(data, entry.edited_words)
    data = lengths.of(data)
    if drawn:
        # Rows are drawn before the limit of the call applies, so that fewer rows belong to the same draw.
        count = min(entry.limit or len(data), len(data))
        places = Random(f"sample {entry.sample}").sample(range(len(data)), count)[:limit]
        name = f"{data.name}, {count} drawn with seed {entry.sample}"
        data = replace(data, name=name, rows=tuple(data.rows[place] for place in sorted(places)))
    elif whole:
        data = replace(data, rows=data.rows[:first])
    if not data.rows:
        raise DataError(f"{data.name} has no usable row.")
    return data if entry.known_features is None else with_features(data, entry.known_features)


def with_features(data: Dataset, words: KnownFeatures) -> Dataset:
    """The data with known features. Raises InputError if that is impossible."""
    return known_features(data, words.words, position=words.position, correlation=words.correlation, seed=words.seed)


def numbered(data: Dataset, labels: tuple[str, ...]) -> Dataset:
    """The data with its labels as numbers in the order of `labels`, the study's names of the classes, if there are
    any."""
    if not labels:
        return data
    numbers = data.class_indices(labels)
    rows = tuple(replace(row, label=number) for row, number in zip(data.rows, numbers, strict=True))
    return replace(data, rows=rows, labels=labels)


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
