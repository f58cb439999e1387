"""The content of every view of an explained output, computed once: the prompt for the whole output, and a row per
token.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import fsum

from raison.core.results.generation import GenerationExplanation
from raison.report.explanations.facts import facts
from raison.report.explanations.layout import ExplanationLayout, MatrixRow, ScaleEnds, bar, ends, layout, names
from raison.report.style import phrases
from raison.report.style.colours import Scale, peak
from raison.report.style.markup import minus

ALL = "all"
"""The state of the whole output."""


@dataclass(frozen=True, slots=True)
class OutputLayout:
    """An explained output as it is shown. `whole` sums over its tokens; `ends` are those of all rows together."""

    e: GenerationExplanation
    scale: Scale
    goal: str
    whole: ExplanationLayout
    ends: ScaleEnds
    rows: tuple[MatrixRow, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The units, each on one line."""
        return tuple(phrases.shorten(unit.label, 24) or visible(unit.text) for unit in self.e.units)

    @property
    def facts(self) -> Mapping[str, object]:
        """How it was computed."""
        return facts(self.e)


@dataclass(frozen=True, slots=True)
class PromptColouring:
    """The prompt coloured for some output tokens: for each unit its place in the palette, and its description.

    A unit that was written after the first of the tokens has no shade.
    """

    heading: str
    low: str
    high: str
    shades: tuple[int | None, ...]
    values: tuple[str, ...]


def output_layout(e: GenerationExplanation) -> OutputLayout:
    """The layout of an explained output."""
    whole = layout(e.whole())
    meaning = _meaning(e)
    scale = max((peak(row) for row in e.scores), default=0.0)
    rows = tuple(_row(e, number, scale) for number in range(len(e.tokens)))
    shown = replace(whole, ends=replace(whole.ends, lowest=meaning[0], highest=meaning[1]))
    return OutputLayout(e, Scale(e.signed), _goal(e), shown, ends(e, scale, *meaning), rows)


def token_layout(shown: OutputLayout, number: int) -> ExplanationLayout:
    """The prompt for one output token; units that were not written before it count as zero."""
    row = shown.e.scores[number]
    return layout(replace(shown.whole.e, scores=row + (0.0,) * (len(shown.e.units) - len(row))))


def states(shown: OutputLayout) -> dict[str, PromptColouring]:
    """The states of a page's script: the whole output (ALL), and each token by its number."""
    by_token = {ALL: _state(shown.whole, "Colours for the whole output", len(shown.e.units))}
    for number, row in enumerate(shown.rows):
        by_token[str(number)] = _state(token_layout(shown, number), row.heading, len(row.cells))
    return by_token


def span_state(shown: OutputLayout, first: int, last: int) -> PromptColouring:
    """The same for consecutive output tokens, `first` to `last`, whose scores add up."""
    e, rows = shown.e, shown.e.scores[first : last + 1]
    known = len(rows[0])
    sums = tuple(fsum(row[unit] for row in rows) if unit < known else 0.0 for unit in range(len(e.units)))
    written = (e.prompt + e.output)[e.tokens[first].start : e.tokens[last].end]
    heading = f"Colours for {visible(phrases.shorten(written, 60))} (tokens {first + 1} to {last + 1})"
    return _state(layout(replace(shown.whole.e, scores=sums)), heading, known)


def visible(text: str) -> str:
    """A token on one line, with visible white space."""
    return text.replace("\n", "⏎").replace("\t", "⇥") if text.strip() else text.replace("\n", "⏎").replace(" ", "␣")


def _row(e: GenerationExplanation, number: int, scale: float) -> MatrixRow:
    token = e.tokens[number]
    text, against = visible(token.text), visible(token.against or "")
    probability = phrases.percent(token.probability)
    cells = tuple(bar(e, unit, score, scale) for unit, score in enumerate(e.scores[number]))
    heading = f"Colours for {text}{f' and not {against}' if against else ''} ({probability})"
    return MatrixRow(text, cells, against, probability, heading)


def _goal(e: GenerationExplanation) -> str:
    """The explained quantity of each output token."""
    if e.contrast is None:
        return f"{phrases.quantity(e.of)} of each output token"
    return f"{phrases.quantity(e.of)} of each output token {'over' if e.of == 'margin' else 'minus'} that of another"


def _meaning(e: GenerationExplanation) -> tuple[str, str]:
    """What the two ends of the scale mean for an output token."""
    if not e.signed:
        return "less important", "more important"
    return "against it" if e.contrast is None else "for the other token", "for it"


def _state(shown: ExplanationLayout, heading: str, known: int) -> PromptColouring:
    """The first `known` units were written before the token; a later one has neither a shade nor a value."""
    units = [span for span in shown.passages[0].spans if span.is_unit]
    later = [min(span.piece.units) >= known for span in units]
    return PromptColouring(
        heading,
        minus(shown.ends.low),
        minus(shown.ends.high),
        tuple(
            None if gone or span.level is None else shown.scale.place(span.level)
            for span, gone in zip(units, later, strict=True)
        ),
        tuple(
            "not written yet" if gone else names(shown.e, span) + minus(span.value)
            for span, gone in zip(units, later, strict=True)
        ),
    )
