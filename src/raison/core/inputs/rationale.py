"""Spans of a text that should matter: marked by people, or known to decide the label."""

from collections.abc import Sequence
from dataclasses import dataclass

from raison.core.inputs.unit import Unit


@dataclass(frozen=True, slots=True)
class Span:
    """Characters `start` to `end` of a text, or of a pair's text number `segment`."""

    start: int
    end: int
    segment: int = 0


Rationale = tuple[Span, ...]
"""The spans of one annotator; empty if nothing was marked."""


def unit_mask(rationale: Rationale, units: Sequence[Unit]) -> tuple[bool, ...]:
    """Which units are in the rationale: those that share at least one character with one of its spans."""
    return tuple(
        any(span.segment == unit.segment and span.start < unit.end and unit.start < span.end for span in rationale)
        for unit in units
    )
