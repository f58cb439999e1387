"""Harmless edits of a prompt with sources: one of them is reworded, or two change places."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from raison.core.draws import generator_for
from raison.text.edits import ORDER, edit
from raison.text.sourced import SourcePlace


@dataclass(frozen=True, slots=True)
class EditedSources:
    """A prompt after an edit, and the new places of its sources, in their new order."""

    text: str
    places: tuple[SourcePlace, ...]


def edit_sources(name: str, text: str, places: Sequence[SourcePlace]) -> EditedSources | None:
    """The prompt after one named edit of its sources, or None if the edit does not apply.

    Which sources are edited depends only on the text. "order" exchanges two sources with their labels; any other edit
    is one of raison.text.edits, made in one source. Raises UnknownNameError.
    """
    order = generator_for(f"{name} sources", text).permutation(len(places)).tolist()
    if name == ORDER:
        return None if len(places) < 2 else _exchanged(text, places, *sorted(order[:2]))
    for number in order:
        place = places[number]
        edited = edit(name, text[place.first : place.last])
        if edited is not None:
            return _replaced(text, places, number, str(edited.text))
    return None


def _replaced(text: str, places: Sequence[SourcePlace], number: int, written: str) -> EditedSources:
    """The prompt with one source reworded; its label stays."""
    place = places[number]
    moved = len(written) - (place.last - place.first)
    moved_place = replace(place, last=place.last + moved, end=place.end + moved)
    after = [one.shifted(moved) for one in places[number + 1 :]]
    return EditedSources(text[: place.first] + written + text[place.last :], (*places[:number], moved_place, *after))


def _exchanged(text: str, places: Sequence[SourcePlace], one: int, other: int) -> EditedSources:
    """The prompt with two sources exchanged; the text between sources stays."""
    new = [*places]
    new[one], new[other] = places[other], places[one]
    between = [text[a.end : b.start] for a, b in pairwise(places)]
    written, shifted = text[: places[0].start], []
    for place, gap in zip(new, [*between, text[places[-1].end :]], strict=True):
        shifted.append(place.shifted(len(written) - place.start))
        written += text[place.start : place.end] + gap
    return EditedSources(written, tuple(shifted))
