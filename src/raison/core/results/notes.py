"""The notes of an explanation: those that views and metrics read have a type, others are any JSON value."""

from collections.abc import Mapping
from typing import Any

from raison.core.errors import DataError
from raison.core.inputs.special_names import caution_of_names
from raison.core.inputs.unknown_tokens import caution_of_text
from raison.core.note_names import (
    AMONG,
    AUTO,
    CANDIDATE_VALUES,
    CANDIDATES,
    CAUTION,
    COMPLETENESS_GAP,
    DECOMPOSED,
    DECOMPOSITION_GAP,
    EACH_FROM,
    EXACT,
    EXTENDED,
    GROUP_INTERVALS,
    GROUPS,
    NOISE,
    PRECISION,
    RANKING,
    SELECTED_BY,
    SERVED,
    TRAINED_FOR,
    UNKNOWN_TOKENS,
    UNSTEADY,
)
from raison.core.results import number_rank
from raison.core.settings.reading import NAME, Fields

_NUMBERS = (COMPLETENESS_GAP, DECOMPOSITION_GAP)
_SENTENCES = (AUTO, CAUTION, UNSTEADY, DECOMPOSED, TRAINED_FOR, SELECTED_BY, SERVED)
_LISTED = (TRAINED_FOR, CAUTION)
"""Notes that a method composed of several methods keeps for each of them, if they differ."""


def check_notes(data: Mapping[str, Any], what: str, units: int) -> None:
    """DataError if the `notes` of `what`, an explanation of `units` units, are invalid."""
    notes = Fields(Fields(data, what).plain("notes"), f"{what}: the notes")
    if any(len(name) > NAME for name in notes.data):
        raise DataError(f"not {notes.what}: a name has more than {NAME} characters.")
    for name in notes.data:
        if name in _NUMBERS:
            notes.number(name)
        elif name in _SENTENCES and not (name in _LISTED and isinstance(notes.data[name], list)):
            notes.string(name)
        elif name in _LISTED:
            notes.strings(name)
    if EACH_FROM in notes.data:
        notes.number(EACH_FROM, 0.0, 1.0)
    if SELECTED_BY in notes.data:
        notes.whole(CANDIDATES, 1)
    elif CANDIDATES in notes.data:
        notes.string(SELECTED_BY)
    _check_values(notes)
    _check_precision(notes)
    if NOISE in notes.data:
        check_noise(notes)
    if UNKNOWN_TOKENS in notes.data:
        _check_unknown(notes, units)
    if AMONG in notes.data:
        number_rank.check(notes.data[AMONG], notes.what)
    if RANKING in notes.data:
        notes.numbers(RANKING, None)
    for name in (EXACT, EXTENDED):
        if name in notes.data and any(unit >= units for unit in notes.wholes(name)):
            notes.refuse(name, f"a list of numbers below {units}")
    _check_groups(notes)


def _check_groups(notes: Fields) -> None:
    if GROUPS in notes.data:
        notes.numbers(GROUPS, None)
    if GROUP_INTERVALS in notes.data:
        for pair in notes.items(GROUP_INTERVALS):
            Fields({GROUP_INTERVALS: pair}, notes.what).numbers(GROUP_INTERVALS, 2)


def _check_values(notes: Fields) -> None:
    """Checks the values of the candidate maps, null where a value was undefined."""
    if CANDIDATE_VALUES in notes.data:
        values = [value for value in notes.items(CANDIDATE_VALUES) if value is not None]
        Fields({CANDIDATE_VALUES: values}, notes.what).numbers(CANDIDATE_VALUES, None)


def _check_precision(notes: Fields) -> None:
    precision = notes.data.get(PRECISION, {})
    for one in precision if isinstance(precision, list) else [precision]:
        if not isinstance(one, dict):
            notes.refuse(PRECISION, "an object")
        fields = Fields(one, f"{notes.what}: precision")
        if one:
            fields.string("evaluations", NAME)
            fields.whole("checked")
        if one.get("rank_correlation") is not None:
            fields.number("rank_correlation", -1.0 - 1e-6, 1.0 + 1e-6)


def noise_in(notes: Mapping[str, Any]) -> float:
    """The value up to which scores are not ranked; 0 if nothing was measured."""
    return float(notes[NOISE]["value"]) if NOISE in notes else 0.0


def check_noise(notes: Fields) -> None:
    """DataError for an invalid noise; `notes` are the notes."""
    fields = Fields(notes.mapping(NOISE), f"{notes.what}: {NOISE}")
    for name in ("value", "mean", "bound"):
        fields.number(name, 0.0)
    fields.whole("repeated")


def _check_unknown(notes: Fields, units: int) -> None:
    fields = Fields(notes.mapping(UNKNOWN_TOKENS), f"{notes.what}: {UNKNOWN_TOKENS}")
    fields.number("share", 0.0, 1.0)
    if any(unit >= units for unit in fields.wholes("units")):
        fields.refuse("units", f"a list of numbers below {units}")


def cautions_of_text(notes: Mapping[str, Any]) -> list[str]:
    """What an explanation's notes say of how its text is read: sentences without their full stops."""
    return [caution for caution in (caution_of_names(notes), caution_of_text(notes)) if caution is not None]
