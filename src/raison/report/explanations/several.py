"""Explanations of several targets of one text, as target="each" gives them: a matrix of targets and units."""

from collections.abc import Sequence
from dataclasses import dataclass

from raison.core.results.explanation import Explanation
from raison.report.explanations.layout import Ends, MatrixRow, bar, ends, largest
from raison.report.style import phrases
from raison.report.style.colours import Scale, scale_of

TOP = 30
"""Units of a matrix in the terminal, the strongest of the text."""


@dataclass(frozen=True, slots=True)
class TargetsLayout:
    """Targets of one text as they are shown, all on one scale: a row for each, and the units above the columns."""

    e: Explanation
    scale: Scale
    goal: str
    ends: Ends
    names: tuple[str, ...]
    rows: tuple[MatrixRow, ...]
    strong: tuple[int, ...]
    cautions: tuple[str, ...]


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
