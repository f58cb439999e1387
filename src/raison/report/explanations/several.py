"""Several explanations on one scale; and several targets of one text, as target="each" gives them, as a matrix."""

from collections.abc import Sequence
from dataclasses import dataclass

from raison.core.results.explanation import Explanation
from raison.report.explanations.layout import ExplanationLayout, MatrixRow, ScaleEnds, bar, ends, largest, layout
from raison.report.style import phrases
from raison.report.style.colours import Scale
from raison.report.style.markup import minus

TOP = 30
"""Units of a matrix in the terminal, the strongest of the text."""


@dataclass(frozen=True, slots=True)
class TargetsLayout:
    """Targets of one text on one scale: a row for each, and the units above the columns."""

    e: Explanation
    scale: Scale
    goal: str
    ends: ScaleEnds
    names: tuple[str, ...]
    rows: tuple[MatrixRow, ...]
    strong: tuple[int, ...]
    cautions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OnScale:
    """An explanation on a scale of several: places in the palette, lengths of the bars, and the ends of the scale."""

    shades: tuple[int | None, ...]
    widths: tuple[str, ...]
    low: str
    high: str


@dataclass(frozen=True, slots=True)
class Together:
    """Explanations on one scale, for a page's script."""

    palette: list[str]
    shown: tuple[OnScale, ...]


def together(explanations: Sequence[phrases.AnyExplanation]) -> Together | None:
    """Explanations on the scale of the largest score among them; None if they have no common scale."""
    predictions = [e for e in explanations if isinstance(e, Explanation)]
    if len(predictions) < len(explanations) or len(predictions) < 2 or apart(predictions):
        return None
    scale = max(map(largest, predictions))
    return Together(Scale(predictions[0].signed).palette(), tuple(_on_scale(layout(e, scale)) for e in predictions))


def apart(explanations: Sequence[Explanation]) -> str:
    """Why explanations have no common scale; empty if they have one."""
    quantities = list(dict.fromkeys(phrases.quantity(e.of) for e in explanations))
    if len(quantities) > 1:
        return f"{' and '.join(quantities)} have no common scale, so each map has its own"
    if len({e.signed for e in explanations}) > 1:
        return "signed and unsigned scores have no common scale, so each map has its own"
    return ""


def common_scale(explanations: Sequence[Explanation]) -> float | None:
    """The largest score among explanations that have a common scale; None if each has its own."""
    return None if apart(explanations) else max(map(largest, explanations))


def _on_scale(shown: ExplanationLayout) -> OnScale:
    units = [span for passage in shown.passages for span in passage.spans if span.is_unit]
    return OnScale(
        shades=tuple(None if span.level is None else shown.scale.place(span.level) for span in units),
        widths=tuple(shown.width(bar) for bar in shown.bars if bar.level),
        low=minus(shown.ends.low),
        high=minus(shown.ends.high),
    )


def are_targets(explanations: Sequence[phrases.AnyExplanation]) -> bool:
    """Whether these explain several targets of one text, by one method."""
    predictions = [e for e in explanations if isinstance(e, Explanation)]
    kinds = {
        (
            e.model,
            e.text,
            e.units,
            e.method,
            repr(e.config),
            e.of,
            e.removal,
            e.signed,
            e.outputs == "number" and e.classes,
        )
        for e in predictions
    }
    targets = {(phrases.goal(e), e.place) for e in predictions}
    return len(kinds) == 1 and len(predictions) > 1 and len(targets) == len(explanations)


def targets_layout(explanations: Sequence[Explanation]) -> TargetsLayout:
    """The layout of the targets; `strong` are the units that are strongest for any of them, in the text's order."""
    scale, first = max(map(largest, explanations)), explanations[0]
    strength = [max(abs(e.scores[unit]) for e in explanations) for unit in range(len(first.units))]
    ranked = sorted(range(len(strength)), key=lambda unit: -strength[unit])
    return TargetsLayout(
        first,
        Scale(first.signed),
        f"{phrases.quantity(first.of)} of {len(explanations)} targets",
        ends(first, scale, "", ""),
        tuple(phrases.named(unit, 24) for unit in first.units),
        tuple(
            MatrixRow(phrases.named_target(e), tuple(bar(e, unit, score, scale) for unit, score in enumerate(e.scores)))
            for e in explanations
        ),
        tuple(sorted(ranked[:TOP])),
        tuple(dict.fromkeys(caution for e in explanations for caution in phrases.cautions(e))),
    )
