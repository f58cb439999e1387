"""Several explanations on one scale; and several targets of one text, as target="each" gives them, as a matrix."""

from collections.abc import Sequence
from dataclasses import dataclass

from raison.core.results.explanation import Explanation
from raison.report.explanations.layout import ExplanationLayout, MatrixRow, ScaleEnds, bar, ends, largest, layout
from raison.report.style import phrases
from raison.report.style.colours import Scale, scale_of
from raison.report.style.markup import minus

TOP = 30
"""Units of a matrix in the terminal, the strongest of the text."""


@dataclass(frozen=True, slots=True)
class TargetsLayout:
    """Targets of one text as they are shown, all on one scale: a row for each, and the units above the columns."""

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
    """What a page's script shows of explanations on one scale."""

    palette: list[str]
    shown: tuple[OnScale, ...]


def together(explanations: Sequence[phrases.Explained]) -> Together | None:
    """Explanations on the scale of the largest score among them; None where they have no common scale."""
    own = [e for e in explanations if isinstance(e, Explanation)]
    if len(own) < len(explanations) or len(own) < 2 or apart(own):
        return None
    scale = max(map(largest, own))
    return Together(scale_of(own[0].signed).palette(), tuple(_on_scale(layout(e, scale)) for e in own))


def apart(explanations: Sequence[Explanation]) -> str:
    """Why explanations have no common scale; nothing where they have one."""
    quantities = list(dict.fromkeys(phrases.quantity(e.of) for e in explanations))
    if len(quantities) > 1:
        return f"{' and '.join(quantities)} have no common scale, so each map has its own"
    if len({e.signed for e in explanations}) > 1:
        return "signed and unsigned scores have no common scale, so each map has its own"
    return ""


def _on_scale(shown: ExplanationLayout) -> OnScale:
    units = [span for passage in shown.passages for span in passage.spans if span.is_unit]
    return OnScale(
        shades=tuple(None if span.level is None else shown.scale.place(span.level) for span in units),
        widths=tuple(shown.width(bar) for bar in shown.bars if bar.level),
        low=minus(shown.ends.low),
        high=minus(shown.ends.high),
    )


def are_targets(explanations: Sequence[phrases.Explained]) -> bool:
    """Whether these explain several targets of one text, by one method."""
    own = [e for e in explanations if isinstance(e, Explanation)]
    kinds = {(e.text, e.units, e.method, repr(e.config), e.of, e.signed) for e in own}
    targets = {(phrases.goal(e), e.place) for e in own}
    return len(kinds) == 1 and len(own) > 1 and len(targets) == len(explanations)


def targets_layout(explanations: Sequence[Explanation]) -> TargetsLayout:
    """How the targets are shown; `strong` are the units that are strongest for any of them, in the text's order."""
    scale, first = max(map(largest, explanations)), explanations[0]
    strength = [max(abs(e.scores[unit]) for e in explanations) for unit in range(len(first.units))]
    ranked = sorted(range(len(strength)), key=lambda unit: -strength[unit])
    return TargetsLayout(
        first,
        scale_of(first.signed),
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
