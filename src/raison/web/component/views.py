"""Explanations as the component draws them: the layout of every other view, as plain JSON values."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate

from raison.core.results.explanation import Explanation
from raison.core.settings.reading import plain_values
from raison.report.explanations.layout import (
    AnswerPart,
    Bar,
    ExplanationLayout,
    ScaleEnds,
    ShownSpan,
    TextLayout,
    largest,
    layout,
)
from raison.report.explanations.pairwise_agreement import agreement
from raison.report.explanations.several import apart
from raison.report.style import phrases
from raison.report.style.markup import minus

BAR = 0.75
"""The level whose colour all bars have: a strong colour for any length."""


@dataclass(frozen=True, slots=True)
class PaintedSpan:
    """Some characters, from `start` to `end` of their text in code points; `said` is empty without a score.

    `colour` is what the style sheet paints, as variables of a style; empty without a finite score. `name` is that of a
    part, such as the role of a message.
    """

    parts: tuple[AnswerPart, ...]
    start: int
    end: int
    units: tuple[int, ...]
    colour: str
    unread: bool
    said: str
    name: str


@dataclass(frozen=True, slots=True)
class PaintedPassage:
    """One of the one or two texts, with its heading."""

    label: str
    spans: tuple[PaintedSpan, ...]


@dataclass(frozen=True, slots=True)
class PaintedBar:
    """A unit with its score; `length` from 0 to 1, `side` is where the bar goes."""

    unit: int
    name: str
    value: str
    length: float
    side: str
    colour: str


@dataclass(frozen=True, slots=True)
class Painted:
    """An explanation as the component draws it."""

    unit: str
    signed: bool
    verdict: phrases.OutputPhrase
    goal: str
    made_by: str
    passages: tuple[PaintedPassage, ...]
    ends: ScaleEnds
    strip: str
    bars: tuple[PaintedBar, ...]
    rest: str
    certainty: str | None
    unread: str | None
    cautions: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ComparedView:
    """Explanations side by side, on one scale if they have one; for two, a comparison."""

    views: tuple[Painted, ...]
    remarks: tuple[str, ...]


def seen(explanations: Sequence[Explanation]) -> dict[str, object]:
    """The explanations as plain JSON values for the component."""
    told_apart = apart(explanations)
    shared = None if told_apart or not explanations else max(map(largest, explanations))
    of_two = (change, agreement, _targets) if len(explanations) == 2 else ()
    remarks = [*(remark(*explanations) for remark in of_two), told_apart]
    view = ComparedView(tuple(_painted(layout(e, shared)) for e in explanations), tuple(filter(None, remarks)))
    return plain_values(asdict(view))


def change(first: Explanation, second: Explanation) -> str:
    """The change of the value; if the two explain different classes, how the first one's probability changes."""
    if phrases.goal(first) == phrases.goal(second):
        return from_to(phrases.goal(second), first.value_full, second.value_full)
    shares = [dict(zip(e.classes, e.probabilities, strict=False)) for e in (first, second)]
    if any(first.target not in share for share in shares):
        return ""
    return from_to(f"probability of {first.target}", *(share[first.target] for share in shares))


def from_to(what: str, before: float, after: float) -> str:
    """How a value changed, in words and numbers."""
    places = phrases.places(before, after)
    values = [phrases.number(value, places) for value in (before, after)]
    difference = phrases.signed(after - before, places)
    return minus(f"{what[0].upper()}{what[1:]}: {values[0]} \N{RIGHTWARDS ARROW} {values[1]} ({difference})")


def _targets(first: Explanation, second: Explanation) -> str:
    """A remark if the two explain different targets; empty otherwise."""
    goals = [phrases.goal(e) for e in (first, second)]
    return "" if goals[0] == goals[1] else f"The first map explains the {goals[0]}, the second the {goals[1]}"


def _painted(shown: ExplanationLayout) -> Painted:
    e = shown.e
    return Painted(
        unit=e.unit,
        signed=e.signed,
        verdict=phrases.verdict(e),
        goal=phrases.goal(e),
        made_by=phrases.made_by(e),
        passages=tuple(painted_passage(shown, passage) for passage in shown.passages),
        ends=painted_ends(shown.ends),
        strip=shown.scale.gradient(),
        bars=tuple(_bar(shown, bar) for bar in shown.bars),
        rest=minus(shown.rest),
        certainty=phrases.certainty(e),
        unread=phrases.unread(e),
        cautions=tuple(phrases.cautions(e)),
        facts=tuple((name, str(fact)) for name, fact in shown.facts.items()),
    )


def painted_ends(ends: ScaleEnds) -> ScaleEnds:
    """The ends of a scale, their numbers with true minus signs."""
    return ScaleEnds(ends.lowest, minus(ends.low), minus(ends.high), ends.highest)


def painted_passage(shown: ExplanationLayout, passage: TextLayout) -> PaintedPassage:
    """One of the texts of an explanation."""
    ends = list(accumulate(len(span.piece.text) for span in passage.spans))
    starts = [0, *ends]
    return PaintedPassage(
        passage.label,
        tuple(_span(shown, span, start) for span, start in zip(passage.spans, starts, strict=False)),
    )


def _span(shown: ExplanationLayout, span: ShownSpan, start: int) -> PaintedSpan:
    end = start + len(span.piece.text)
    colour = "" if span.level is None else shown.scale.css(span.level)
    name = ", ".join(shown.e.units[unit].name for unit in span.piece.units if shown.e.units[unit].name)
    return PaintedSpan(span.parts, start, end, span.piece.units, colour, span.unread, span.said, name)


def _bar(shown: ExplanationLayout, bar: Bar) -> PaintedBar:
    side = "amount" if not shown.scale.signed else "for" if bar.level > 0 else "against"
    colour = shown.scale.css(BAR if bar.level > 0 else -BAR) if bar.level else ""
    name = phrases.named(shown.e.units[bar.unit], 90)
    return PaintedBar(bar.unit, name, minus(bar.value), abs(bar.level), side, colour)
