"""The content of all views of an explanation, computed once: spans of the text, levels, numbers, strongest units."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from raison.core.inputs.unit import segments
from raison.core.results.explanation import Explanation
from raison.core.results.notes import noise_in
from raison.report.explanations.facts import facts
from raison.report.style import phrases
from raison.report.style.colours import Scale, level, peak
from raison.report.style.markup import minus

TOP = 8
"""Units that are listed as the strongest."""


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """Some characters, inside the explained answer or outside it, and whether the answer begins or ends with them."""

    text: str
    inside: bool = False
    opens: bool = False
    closes: bool = False


@dataclass(frozen=True, slots=True)
class TextPiece:
    """Some characters and the units that cover them: none in between, several where byte tokens share a character."""

    text: str
    units: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ShownSpan:
    """A piece as it is shown. `level` is None without a finite score, `rank` 1 for the strongest unit, 0 for none.

    `said` describes it in words besides its text: its name, its score, its rank.
    """

    piece: TextPiece
    parts: tuple[AnswerPart, ...]
    level: float | None = None
    value: str = ""
    rank: int = 0
    unread: bool = False
    said: str = ""

    @property
    def is_unit(self) -> bool:
        """Whether it has a score, even NaN."""
        return bool(self.piece.units)


@dataclass(frozen=True, slots=True)
class TextLayout:
    """One of the one or two texts, with its heading."""

    label: str
    spans: tuple[ShownSpan, ...]


@dataclass(frozen=True, slots=True)
class Bar:
    """A unit with its score; the level of a NaN score is zero."""

    unit: int
    value: str
    level: float
    unread: bool = False
    finite: bool = True
    ranked: bool = True
    """Whether it exceeds the noise of the server."""


@dataclass(frozen=True, slots=True)
class MatrixRow:
    """A target or an output token with the score of each unit.

    For a token: the token that it is contrasted with ("" without one), its probability, and a heading for its colours.
    """

    text: str
    cells: tuple[Bar, ...]
    against: str = ""
    probability: str = ""
    heading: str = ""


@dataclass(frozen=True, slots=True)
class ScaleEnds:
    """The numbers at the ends of the scale, and what they mean."""

    lowest: str
    low: str
    high: str
    highest: str


@dataclass(frozen=True, slots=True)
class ExplanationLayout:
    """An explanation as it is shown; `rest` summarises the units without a bar."""

    e: Explanation
    scale: Scale
    passages: tuple[TextLayout, ...]
    ends: ScaleEnds
    bars: tuple[Bar, ...]
    rest: str

    @property
    def goal(self) -> str:
        """The explained quantity."""
        return phrases.goal(self.e)

    @property
    def facts(self) -> Mapping[str, object]:
        """How it was computed."""
        return facts(self.e)

    def width(self, bar: Bar) -> str:
        """The length of a bar as a CSS value."""
        return f"{(50 if self.scale.signed else 100) * abs(bar.level):.1f}%"


def layout(e: Explanation, shared: float | None = None) -> ExplanationLayout:
    """The layout of an explanation; `shared` is the end of the scale if it is shared with others."""
    scale = largest(e) if shared is None else shared
    shown = strongest(e, TOP)
    others = sorted(set(range(len(e.scores))) - {*shown, *e.unranked})
    bars = tuple(bar(e, unit, e.scores[unit], scale) for unit in shown)
    total = phrases.score(e, sum(e.scores[unit] for unit in others), phrases.decimals(scale))
    verb = "adds" if len(others) == 1 else "add"
    rest = f"{phrases.count(len(others), f'weaker {e.unit}')} {verb} up to {total}" if others else ""
    return ExplanationLayout(e, Scale(e.signed), _passages(e, scale), ends(e, scale, *phrases.ends(e)), bars, rest)


def bar(e: phrases.AnyExplanation, unit: int, score: float, scale: float) -> Bar:
    """A unit's score as a bar."""
    finite, unread = math.isfinite(score), unit in phrases.unknown_units(e)
    value = phrases.score(e, score, phrases.decimals(scale))
    noise = noise_in(e.notes)
    return Bar(unit, value, level(score, scale) if finite else 0.0, unread, finite, not noise or abs(score) > noise)


def ends(e: phrases.AnyExplanation, scale: float, against: str, towards: str) -> ScaleEnds:
    """The ends of a scale, with their meanings."""
    places = phrases.decimals(scale)
    low, high = (phrases.score(e, end, places) for end in (-scale if e.signed else 0.0, scale))
    return ScaleEnds(against, low, high, towards)


def pieces(e: Explanation) -> tuple[tuple[TextPiece, ...], ...]:
    """The pieces of each of the texts; joined, they are the text."""
    return tuple(tuple(_cut(e, number, text)) for number, text in enumerate(segments(e.text)))


def parts(e: Explanation, segment: int, texts: Sequence[str]) -> tuple[tuple[AnswerPart, ...], ...]:
    """Consecutive strings that make up a text, each cut where the explained answer begins and ends."""
    start, end = phrases.boxed(e, segment)
    cut = []
    cursor = 0
    for text in texts:
        first, last = (min(max(place - cursor, 0), len(text)) for place in (start, end))
        inside = AnswerPart(text[first:last], True, cursor + first == start, cursor + last == end)
        three = (AnswerPart(text[:first]), inside, AnswerPart(text[last:]))
        cut.append(tuple(part for part in three if part.text))
        cursor += len(text)
    return tuple(cut)


def largest(e: Explanation) -> float:
    """The absolute score at the ends of the colour scale."""
    shared = (_score(e, piece) for text in pieces(e) for piece in text if len(piece.units) > 1)
    return max(peak(e.scores), peak(shared))


def strongest(e: Explanation, limit: int) -> tuple[int, ...]:
    """The units with the largest absolute scores first; ties keep the order of the text, NaN and infinity come last.

    Units within the noise of a server are left out.
    """
    strength = [abs(score) if math.isfinite(score) else -1.0 for score in e.scores]
    unranked = {*e.unranked}
    ranked = [unit for unit in range(len(strength)) if unit not in unranked]
    return tuple(sorted(ranked, key=lambda unit: (-strength[unit], unit))[:limit])


def _score(e: Explanation, piece: TextPiece) -> float:
    return sum(e.scores[unit] for unit in piece.units)


def _passages(e: Explanation, scale: float) -> tuple[TextLayout, ...]:
    ranks = {unit: rank for rank, unit in enumerate(strongest(e, len(e.scores)), 1)}
    places, unread = phrases.decimals(scale), phrases.unknown_units(e)

    def span(piece: TextPiece, cut: tuple[AnswerPart, ...]) -> ShownSpan:
        if not piece.units:
            return ShownSpan(piece, cut)
        score = _score(e, piece)
        known = level(score, scale) if math.isfinite(score) else None
        rank = min((ranks[unit] for unit in piece.units if unit in ranks), default=0)
        shown = ShownSpan(piece, cut, known, phrases.score(e, score, places), rank, not unread.isdisjoint(piece.units))
        return replace(shown, said=_said(e, shown))

    labels = phrases.text_labels(e)
    cuts = [parts(e, number, [piece.text for piece in text]) for number, text in enumerate(pieces(e))]
    return tuple(
        TextLayout(label, tuple(map(span, text, cut))) for label, text, cut in zip(labels, pieces(e), cuts, strict=True)
    )


def names(e: Explanation, span: ShownSpan) -> str:
    """The names of a span's units, shown before its score; "" if they have none."""
    return "".join(f"{e.units[unit].name}: " for unit in span.piece.units if e.units[unit].name)


def _said(e: Explanation, span: ShownSpan) -> str:
    """The description of a span besides its text."""
    count = len(span.piece.units)
    together = f" ({phrases.count(count, e.unit)} together)" if count > 1 else ""
    unread = ", unknown to the model" if span.unread else ""
    rank = f"rank {span.rank} of {len(e.scores)}" if span.rank else "within the noise"
    return f"{names(e, span)}{minus(span.value)}{together}, {rank}{unread}"


def _cut(e: Explanation, segment: int, text: str) -> list[TextPiece]:
    """A text's pieces in order; units that overlap are in one piece."""
    spans = sorted((unit.start, unit.end, number) for number, unit in enumerate(e.units) if unit.segment == segment)
    cut: list[TextPiece] = []
    cursor = 0
    for start, end, number in spans:
        start, end = max(0, start), min(len(text), end)
        if start >= end:
            continue
        if start < cursor:
            last = cut.pop()
            first, cursor = cursor - len(last.text), max(cursor, end)
            cut.append(TextPiece(text[first:cursor], (*last.units, number)))
            continue
        cut += [TextPiece(text[cursor:start], ())] if start > cursor else []
        cut.append(TextPiece(text[start:end], (number,)))
        cursor = end
    return [*cut, TextPiece(text[cursor:], ())] if cursor < len(text) else cut
