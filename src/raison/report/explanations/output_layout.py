"""What every view of an explained output shows, computed once: the prompt for the whole output, and a row per token."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from raison.core.results.generation import GenerationExplanation
from raison.report.explanations.facts import facts
from raison.report.explanations.layout import Ends, Layout, MatrixRow, bar, ends, layout
from raison.report.style import phrases
from raison.report.style.colours import Scale, peak, scale_of


@dataclass(frozen=True, slots=True)
class OutputLayout:
    """An explained output as it is shown. `whole` sums over its tokens; `ends` are those of all rows together."""

    e: GenerationExplanation
    scale: Scale
    goal: str
    whole: Layout
    ends: Ends
    rows: tuple[MatrixRow, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The units, each on one line."""
        return tuple(phrases.shorten(unit.label, 24) or visible(unit.text) for unit in self.e.units)

    @property
    def facts(self) -> Mapping[str, object]:
        """How it was computed."""
        return facts(self.e)


def output_layout(e: GenerationExplanation) -> OutputLayout:
    """How the explained output is shown."""
    whole = layout(e.whole())
    meaning = _meaning(e)
    scale = max((peak(row) for row in e.scores), default=0.0)
    rows = tuple(_row(e, number, scale) for number in range(len(e.tokens)))
    shown = replace(whole, ends=replace(whole.ends, lowest=meaning[0], highest=meaning[1]))
    return OutputLayout(e, scale_of(e.signed), _goal(e), shown, ends(e, scale, meaning), rows)


def token_layout(shown: OutputLayout, number: int) -> Layout:
    """The prompt for one output token; units that were not written before it count as zero."""
    row = shown.e.scores[number]
    return layout(replace(shown.whole.e, scores=row + (0.0,) * (len(shown.e.units) - len(row))))


def visible(text: str) -> str:
    """A token on one line, its white space to be seen."""
    return text.replace("\n", "⏎").replace("\t", "⇥") if text.strip() else text.replace("\n", "⏎").replace(" ", "␣")


def _row(e: GenerationExplanation, number: int, scale: float) -> MatrixRow:
    token = e.tokens[number]
    text, against = visible(token.text), visible(token.against or "")
    probability = phrases.percent(token.probability)
    cells = tuple(bar(e, unit, score, scale) for unit, score in enumerate(e.scores[number]))
    heading = f"Colours for {text}{f' and not {against}' if against else ''} ({probability})"
    return MatrixRow(text, cells, against, probability, heading)


def _goal(e: GenerationExplanation) -> str:
    """What was explained of each output token."""
    if e.contrast is None:
        return f"{phrases.quantity(e.of)} of each output token"
    return f"{phrases.quantity(e.of)} of each output token {'over' if e.of == 'margin' else 'minus'} that of another"


def _meaning(e: GenerationExplanation) -> tuple[str, str]:
    """What the two ends of the scale mean for an output token."""
    if not e.signed:
        return "less important", "more important"
    return "against it" if e.contrast is None else "for the other token", "for it"
