"""The text cut into what has a score and what lies between, so that every character is shown exactly once."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from raison.core.explanation import Explanation
from raison.core.unit import segments
from raison.report.style.colours import peak


@dataclass(frozen=True, slots=True)
class Piece:
    """Some characters and the units that cover them: none in between, several where byte tokens share a character."""

    text: str
    units: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """Some characters, inside the explained answer or outside it, and whether the answer begins or ends with them."""

    text: str
    inside: bool = False
    opens: bool = False
    closes: bool = False


def pieces(e: Explanation) -> tuple[tuple[Piece, ...], ...]:
    """The pieces of each of the one or two texts; joined, they are the text."""
    return tuple(_cut(text, _spans(e, number, len(text))) for number, text in enumerate(segments(e.text)))


def parts(e: Explanation, segment: int, texts: Sequence[str]) -> tuple[tuple[AnswerPart, ...], ...]:
    """Consecutive strings that make up a text, each cut where the explained answer begins and ends."""
    start, end = (e.answer.start, e.answer.end) if e.answer is not None and segment == 1 else (0, 0)
    cut = []
    cursor = 0
    for text in texts:
        first, last = (min(max(place - cursor, 0), len(text)) for place in (start, end))
        inside = AnswerPart(text[first:last], True, cursor + first == start, cursor + last == end)
        three = (AnswerPart(text[:first]), inside, AnswerPart(text[last:]))
        cut.append(tuple(part for part in three if part.text))
        cursor += len(text)
    return tuple(cut)


def text_labels(e: Explanation) -> tuple[str, ...]:
    """What stands over each of the one or two texts."""
    if isinstance(e.text, str):
        return ("",)
    return ("First text", "Second text") if e.answer is None else ("Question", "Context")


def piece_score(e: Explanation, piece: Piece) -> float:
    """The sum of the scores of a piece's units."""
    return sum(e.scores[unit] for unit in piece.units)


def largest(e: Explanation) -> float:
    """The absolute score at the ends of the colour scale."""
    shared = (piece_score(e, piece) for text in pieces(e) for piece in text if len(piece.units) > 1)
    return max(peak(e.scores), peak(shared))


def strongest(e: Explanation, limit: int) -> tuple[int, ...]:
    """The units with the largest absolute scores first; ties keep the order of the text, NaN and infinity come last."""
    strength = [abs(score) if math.isfinite(score) else -1.0 for score in e.scores]
    return tuple(sorted(range(len(strength)), key=lambda unit: (-strength[unit], unit))[:limit])


def _spans(e: Explanation, segment: int, length: int) -> list[tuple[int, int, tuple[int, ...]]]:
    """Spans of units in the order of the text; those that overlap become one."""
    merged: list[tuple[int, int, tuple[int, ...]]] = []
    spans = [(unit.start, unit.end, number) for number, unit in enumerate(e.units) if unit.segment == segment]
    for start, end, number in sorted(spans):
        start, end = max(0, start), min(length, end)
        if start >= end:
            continue
        if merged and start < merged[-1][1]:
            first, last, numbers = merged[-1]
            merged[-1] = (first, max(last, end), (*numbers, number))
        else:
            merged.append((start, end, (number,)))
    return merged


def _cut(text: str, spans: list[tuple[int, int, tuple[int, ...]]]) -> tuple[Piece, ...]:
    pieces_of_text: list[Piece] = []
    cursor = 0
    for start, end, units in spans:
        if start > cursor:
            pieces_of_text.append(Piece(text[cursor:start], ()))
        pieces_of_text.append(Piece(text[start:end], units))
        cursor = end
    if cursor < len(text):
        pieces_of_text.append(Piece(text[cursor:], ()))
    return tuple(pieces_of_text)
