"""Unknown tokens, for text that a model's vocabulary lacks. This file never needs torch."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

NOTE = "unknown_tokens"
"""The note of an explanation that says which units have such tokens."""
SOME, MOST = 0.05, 0.5
"""Shares of unknown tokens from which views warn, and warn more strongly."""


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
    said = notes.get(NOTE)
    if not isinstance(said, dict):
        return None
    share, units = said.get("share"), said.get("units")
    if not isinstance(share, float) or not 0 < share <= 1:
        return None
    if not isinstance(units, list) or not all(type(unit) is int for unit in units):
        return None
    return Unknown(share, tuple(units))


def share_in(notes: Mapping[str, Any]) -> float:
    """The share of unknown tokens that an explanation's notes report; 0 if they report none."""
    found = unknown_in(notes)
    return 0.0 if found is None else found.share


def caution_of_text(notes: Mapping[str, Any]) -> str | None:
    """A sentence, without its full stop, if a text's unknown tokens matter."""
    found = unknown_in(notes)
    if found is None or found.share < SOME:
        return None
    share = f"{100 * found.share:.0f} % of the tokens"
    if found.share < MOST:
        return f"{share} are unknown to the model's vocabulary: it reads the same sign in place of each"
    return (
        f"the model can hardly read this text: {share} are unknown to its vocabulary, and it reads the same sign in "
        "place of each; the prediction says next to nothing about the text"
    )


def caution_of_texts(shares: Sequence[float]) -> tuple[str, ...]:
    """The same about many texts, from the share of each: a sentence or none."""
    told, unread = sum(share >= SOME for share in shares), sum(share >= MOST for share in shares)
    if not told:
        return ()
    mostly = f", {unread} of them for the most part: what is said of these says nothing" if unread else ""
    return (
        f"{told:,} of {len(shares):,} texts have tokens that are unknown to the model's vocabulary "
        f"({100 * SOME:.0f} % or more){mostly}",
    )
