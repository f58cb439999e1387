"""The notes of an explanation: those that views and metrics read have a type, others are any JSON value."""

from collections.abc import Mapping
from typing import Any

from raison.core.errors import DataError
from raison.core.inputs.unknown import NOTE
from raison.core.results import among
from raison.core.settings.reading import NAME, Fields
from raison.core.targets.ranking import NOTE as RANKING

AUTO = "auto"
"""Which method was taken, and why: in one line."""
EXTENDED = "extended"
"""The units with more characters than the caller's spans, which cut a token."""
EACH_FROM = "threshold"
"""The probability from which the labels of a text were explained, each on its own."""
SERVED = "served"
"""Of a model behind a server: which one, and what its answers are made from."""
NOISE = "noise"
"""Of a model behind a server: how far its values move when it is asked the same again."""
_NUMBERS = ("completeness_gap", "decomposition_gap")
_SENTENCES = (AUTO, "caution", "unsteady", "decomposed", "trained_for", "selected_by", SERVED)
_LISTED = ("trained_for", "caution")
"""Notes of which a method that is made of several has one for each, where they differ."""


def check_notes(data: Mapping[str, Any], what: str, units: int) -> None:
    """DataError for the `notes` of `what`, an explanation of so many units, that are not what they should be."""
    Fields(data, what).mapping("notes")
    found = Fields(data["notes"], f"{what}: the notes")
    if any(len(name) > NAME for name in found.data):
        raise DataError(f"not {found.what}: a name has more than {NAME} characters.")
    for name in found.data:
        if name in _NUMBERS:
            found.number(name)
        elif name in _SENTENCES and not (name in _LISTED and isinstance(found.data[name], list)):
            found.string(name)
        elif name in _LISTED:
            found.strings(name)
    if EACH_FROM in found.data:
        found.number(EACH_FROM, 0.0, 1.0)
    if "selected_by" in found.data:
        found.whole("candidates", 1)
    elif "candidates" in found.data:
        found.string("selected_by")
    _check_values(found)
    _check_precision(found)
    if NOISE in found.data:
        check_noise(found)
    if NOTE in found.data:
        _check_unknown(found, units)
    if among.NOTE in found.data:
        among.check(found.data[among.NOTE], found.what)
    if RANKING in found.data:
        found.numbers(RANKING, None)
    if EXTENDED in found.data and any(unit >= units for unit in found.wholes(EXTENDED)):
        found.refuse(EXTENDED, f"a list of numbers below {units}")


def _check_values(found: Fields) -> None:
    """Of the maps that were chosen from, null where a value was not defined."""
    if "candidate_values" in found.data:
        values = [value for value in found.items("candidate_values") if value is not None]
        Fields({"candidate_values": values}, found.what).numbers("candidate_values", None)


def _check_precision(found: Fields) -> None:
    said = found.data.get("precision", {})
    for one in said if isinstance(said, list) else [said]:
        if not isinstance(one, dict):
            found.refuse("precision", "an object")
        own = Fields(one, f"{found.what}: precision")
        if one:
            own.string("evaluations", NAME)
            own.whole("checked")
        if one.get("rank_correlation") is not None:
            own.number("rank_correlation", -1.0 - 1e-6, 1.0 + 1e-6)


def noise_in(notes: Mapping[str, Any]) -> float:
    """The value up to which scores are not ranked; 0 where nothing was measured."""
    return float(notes[NOISE]["value"]) if NOISE in notes else 0.0


def check_noise(found: Fields) -> None:
    """DataError for a noise that is not what it should be; `found` are the notes."""
    found.mapping(NOISE)
    own = Fields(found.data[NOISE], f"{found.what}: {NOISE}")
    for name in ("value", "mean", "bound"):
        own.number(name, 0.0)
    own.whole("repeated")


def _check_unknown(found: Fields, units: int) -> None:
    found.mapping(NOTE)
    own = Fields(found.data[NOTE], f"{found.what}: {NOTE}")
    own.number("share", 0.0, 1.0)
    if any(unit >= units for unit in own.wholes("units")):
        own.refuse("units", f"a list of numbers below {units}")
