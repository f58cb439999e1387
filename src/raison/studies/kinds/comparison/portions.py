"""Runs of a study on fewer texts, whose rows can be taken over: the same request on the first rows, or fewer drawn."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from raison.core.errors import RaisonError
from raison.data import Dataset
from raison.judging.plan import Plan, header_of
from raison.runs.headers import RunHead
from raison.runs.reuse import Portion, whole
from raison.runs.run import HEADER, read_header
from raison.studies.data_loading import load_rows
from raison.studies.entries import StudyData


def portions_of(plan: Plan, header: RunHead, entry: StudyData, data: Dataset, sources: Sequence[Path]) -> list[Portion]:
    """All texts of a run, then those that a run of `sources` may have had under another limit.

    Whether a source had these texts is decided by its header, which has their digest. Raises DataError if a source
    cannot be read.
    """
    heads = [read_header(source / HEADER) for source in sources]
    alike = [head for head in heads if (head.model, head.settings.unit) == (header.model, header.settings.unit)]
    sizes = {head.texts for head in alike if 0 < head.texts < header.texts}
    portions = [whole(header)]
    # A model that writes may leave out a row that it has no answer for.
    if len(plan.texts) == len(data):
        for fewer in (one for size in sorted(sizes, reverse=True) for one in _smaller(entry, size)):
            numbers = _numbers(fewer, data)
            if numbers is not None:
                part = replace(plan.of_texts(numbers), data=fewer.name)
                portions.append(Portion(header_of(part), numbers))
    return portions


def _smaller(entry: StudyData, size: int) -> Iterator[Dataset]:
    """The entry's rows under a smaller limit, of the study or of the call: these are two draws if rows are drawn."""
    variants = [(replace(entry, limit=size), None), (entry, size)]
    for smaller, limit in variants if entry.sample is not None else variants[:1]:
        try:
            yield load_rows(smaller, limit)
        except RaisonError:
            # Such a run cannot have existed.
            continue


def _numbers(fewer: Dataset, data: Dataset) -> tuple[int, ...] | None:
    """The places of these rows among the others, in the same order; None if one is missing."""
    places, start = [], 0
    for row in fewer.rows:
        found = next((place for place in range(start, len(data.rows)) if data.rows[place] == row), None)
        if found is None:
            return None
        places.append(found)
        start = found + 1
    return tuple(places)
