"""Unknown tokens, for text that a model's vocabulary lacks. This file never needs torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from raison.core.note_names import UNKNOWN_TOKENS

SOME, MOST = 0.05, 0.5
"""Shares of unknown tokens from which views warn, and from which they warn strongly."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """The share of a text's tokens that are unknown, and the numbers of the units that have one."""

    share: float
    units: tuple[int, ...]

    def to_note(self) -> dict[str, object]:
        """Plain JSON values."""
        return {"share": self.share, "units": list(self.units)}


def unknown_in(notes: Mapping[str, Any]) -> Unknown | None:
    """The unknown tokens that an explanation's notes report; None if they report nothing readable."""
    note = notes.get(UNKNOWN_TOKENS)
    if not isinstance(note, dict):
        return None
    share, units = note.get("share"), note.get("units")
    if not isinstance(share, float) or not 0 < share <= 1:
        return None
    if not isinstance(units, list) or not all(type(unit) is int for unit in units):
        return None
    return Unknown(share, tuple(units))


def share_in(notes: Mapping[str, Any]) -> float:
    """The share of unknown tokens that an explanation's notes report; 0 if they report none."""
    unknown = unknown_in(notes)
    return 0.0 if unknown is None else unknown.share


def caution_of_text(notes: Mapping[str, Any]) -> str | None:
    """A sentence, without its full stop, if a text's unknown tokens matter."""
    unknown = unknown_in(notes)
    if unknown is None or unknown.share < SOME:
        return None
    share = f"{100 * unknown.share:.0f} % of the tokens"
    if unknown.share < MOST:
        return f"{share} are not in the model's vocabulary: it reads the same symbol for each of them"
    return (
        f"the model can hardly read this text: {share} are not in its vocabulary, and it reads the same symbol for "
        "each of them; the prediction is almost unrelated to the text"
    )


def caution_of_texts(shares: Sequence[float]) -> tuple[str, ...]:
    """The same about many texts, from the share of each: a sentence or none."""
    affected, unread = sum(share >= SOME for share in shares), sum(share >= MOST for share in shares)
    if not affected:
        return ()
    mostly = f", {unread} of them mostly: explanations of these are meaningless" if unread else ""
    return (
        f"{affected:,} of {len(shares):,} texts have tokens outside the model's vocabulary "
        f"({100 * SOME:.0f} % or more){mostly}",
    )
