"""The rows that a study asks for."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random

from raison.core.errors import DataError, RaisonError
from raison.data import Dataset, around_answers, known_features
from raison.data import load as load_data
from raison.data.lengths import at_most, first_words
from raison.studies.entries import StudyData


def load_rows(entry: StudyData, limit: int | None) -> Dataset:
    """A study's data, at most `limit` rows of what the study asks for. Raises RaisonError."""
    first = min((count for count in (entry.limit, limit) if count is not None), default=None)
    drawn = entry.sample is not None
    whole = drawn or entry.longest is not None or entry.answer_window is not None
    found = load_data(entry.source, entry.wanted, split=entry.split, limit=None if whole else first)
    if entry.answer_window is not None:
        found = around_answers(found, entry.answer_window)
    if entry.first_words is not None:
        found = first_words(found, entry.first_words)
    if entry.longest is not None:
        found = at_most(found, entry.longest)
    if whole and not drawn:
        found = replace(found, rows=found.rows[:first])
    if drawn:
        # Rows are drawn before a limit from outside, so that fewer rows are rows of the same draw.
        count = min(entry.limit or len(found), len(found))
        places = Random(f"sample {entry.sample}").sample(range(len(found)), count)[:limit]
        name = f"{found.name}, {count} drawn with seed {entry.sample}"
        found = replace(found, name=name, rows=tuple(found.rows[place] for place in sorted(places)))
    if not found.rows:
        raise DataError(f"{found.name} has no row that can be used.")
    return found if entry.known_features is None else known_features(found, **entry.known_features)


def load_all(
    entries: Mapping[str, StudyData], keys: Sequence[str], limit: int | None
) -> tuple[dict[str, Dataset], list[str]]:
    """The data of these keys, and why some cannot be loaded."""
    found, reasons = {}, []
    for key in keys:
        try:
            found[key] = load_rows(entries[key], limit)
        except RaisonError as error:
            reasons.append(f"[data.{key}]: {error}")
    return found, reasons
