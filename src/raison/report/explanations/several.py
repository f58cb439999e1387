"""Explanations of several targets of one text: a matrix of targets and units, for the terminal and for pages."""

import math
from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from raison.core.explanation import Explanation
from raison.report.explanations.layout import largest
from raison.report.style import phrases
from raison.report.style.colours import level, scale_of
from raison.report.style.markup import Markup, html, joined
from raison.report.style.terminal_text import safe

TOP = 30
"""Units of a matrix in the terminal, the strongest of the text."""
ACROSS = 5
"""Targets beside each other in the terminal."""


def are_targets(explanations: Sequence[Explanation]) -> bool:
    """Whether these explain several targets of one text, by one method."""
    kinds = {(e.text, e.units, e.method, repr(e.config), e.of, e.signed) for e in explanations}
    targets = {phrases.goal(e) for e in explanations}
    return len(kinds) == 1 and len(explanations) > 1 and len(targets) == len(explanations)


def targets_text(explanations: Sequence[Explanation]) -> RenderableType:
    """What was predicted, and the scores of the units in the text's order, a column for each target."""
    first = explanations[0]
    told = phrases.verdict(first)
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", min_width=9)
    facts.add_column(overflow="fold")
    facts.add_row(told.lead, Text.assemble((safe(told.said), "bold"), f" {safe(told.rest)}"))
    facts.add_row("Explained", Text(safe(_goal(explanations))))
    facts.add_row("Method", Text(safe(phrases.made_by(first))))
    shown: list[RenderableType] = [facts]
    for start in range(0, len(explanations), ACROSS):
        shown += [Text(""), _grid(explanations[start : start + ACROSS], _scale(explanations), _strong(explanations))]
    cost = Table.grid(padding=(0, 2))
    cost.add_row(Text("Cost", "dim"), Text(f"{phrases.effort(first)} for {phrases.named_target(first)} alone"))
    return Group(*shown, Text(""), cost, *_warnings(explanations))


def matrix(explanations: Sequence[Explanation]) -> Markup:
    """Targets in rows, each a link to its explanation, and units in columns, all on one scale."""
    scale, first = _scale(explanations), explanations[0]
    places = phrases.decimals(scale)
    low, high = (phrases.score(first, end, places) for end in (-scale if first.signed else 0.0, scale))
    colours = ("blue", "red") if first.signed else ("no colour", "purple")
    return html(
        '<article class="raison"><div class="scroll" tabindex="0" role="region" aria-label="Matrix of scores">'
        '<table class="matrix"><caption>{}</caption>\n'
        "<thead><tr><td></td>{}</tr></thead>\n<tbody>\n{}</tbody></table></div></article>",
        f"Each target in a row, from {low} ({colours[0]}) to {high} ({colours[1]})",
        joined(
            html('<th scope="col"><bdi translate="no">{}</bdi></th>', phrases.named(unit, 24)) for unit in first.units
        ),
        joined(_row(e, number, scale) for number, e in enumerate(explanations, 1)),
    )


def _row(e: Explanation, number: int, scale: float) -> Markup:
    places = phrases.decimals(scale)
    cells = joined(
        html(
            '<td class="cell" style="{}" title="{}: {}"><span>{}</span></td>',
            scale_of(e.signed).css(level(score, scale)),
            phrases.named(unit, 40),
            phrases.score(e, score, places),
            phrases.score(e, score, places),
        )
        for unit, score in zip(e.units, e.scores, strict=True)
    )
    return html(
        '<tr><th scope="row"><a href="#explanation-{}"><bdi translate="no">{}</bdi></a></th>{}</tr>\n',
        number,
        phrases.named_target(e),
        cells,
    )


def _goal(explanations: Sequence[Explanation]) -> str:
    first = explanations[0]
    return f"{phrases.quantity(first.of)} of {len(explanations)} targets, {first.unit} by {first.unit}"


def _scale(explanations: Sequence[Explanation]) -> float:
    return max(map(largest, explanations))


def _strong(explanations: Sequence[Explanation]) -> list[int]:
    """The units that are strongest for any target, in the text's order."""
    strength = [max(abs(e.scores[unit]) for e in explanations) for unit in range(len(explanations[0].units))]
    ranked = sorted(range(len(strength)), key=lambda unit: -strength[unit])
    return sorted(ranked[:TOP])


def _grid(explanations: Sequence[Explanation], scale: float, units: Sequence[int]) -> Table:
    first = explanations[0]
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column(first.unit, overflow="ellipsis", max_width=24)
    for e in explanations:
        grid.add_column(Text(safe(phrases.named_target(e))), justify="right", overflow="fold")
    for unit in units:
        cells = [_cell(e, e.scores[unit], scale) for e in explanations]
        grid.add_row(Text(safe(phrases.named(first.units[unit], 24))), *cells)
    left = len(first.units) - len(units)
    if left:
        grid.add_row(Text(phrases.count(left, f"weaker {first.unit}"), "dim"))
    return grid


def _cell(e: Explanation, score: float, scale: float) -> Text:
    style = scale_of(e.signed).terminal_style(level(score, scale)) if math.isfinite(score) else "reverse"
    return Text(phrases.score(e, score, phrases.decimals(scale)), style)


def _warnings(explanations: Sequence[Explanation]) -> list[Text]:
    told = dict.fromkeys(caution for e in explanations for caution in phrases.cautions(e))
    return [Text(safe(f"Warning: {caution}."), "bold yellow") for caution in told]
