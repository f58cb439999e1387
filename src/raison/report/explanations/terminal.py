"""Explanations for the terminal. Colour is rich's decision: none with NO_COLOR or into a file."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from raison.core.explanation import Explanation
from raison.report.explanations.layout import Piece, largest, parts, piece_score, pieces, strongest, text_labels
from raison.report.style import phrases
from raison.report.style.colours import Scale, level, scale_of
from raison.report.style.terminal_text import safe

TOP = 8
_HALF = 14
_COLUMN = 60
"""Characters that an explanation needs beside another one."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar from a line: to the right for positive levels, to the left for negative ones.

    The line is in the middle, or at the left where no level is negative.
    """

    level: float
    scale: Scale

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        style = Style(color=self.scale.shade(0.75 if self.level > 0 else -0.75))
        before, after = (_HALF, _HALF) if self.scale.signed else (0, 2 * _HALF)
        whole, half = divmod(round(abs(self.level) * 2 * after), 2)
        block, left_half, right_half, axis = ("=", "-", "-", "|") if options.ascii_only else ("━", "╺", "╸", "│")
        left = left_half * half + block * whole if self.level < 0 else ""
        right = block * whole + right_half * half if self.level > 0 else ""
        yield Segment(left.rjust(before), style)
        yield Segment(axis, Style(dim=True))
        yield Segment(right.ljust(after), style)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(2 * _HALF + 1, 2 * _HALF + 1)


def explanation_text(e: Explanation, shared: float | None = None) -> RenderableType:
    """One explanation: what was predicted, the coloured text, its strongest units, what it cost.

    `shared` is the end of the scale that it has in common with others.
    """
    scale = largest(e) if shared is None else shared
    shown: list[RenderableType] = [_header(e), Text("")]
    for number, (label, text) in enumerate(zip(text_labels(e), pieces(e), strict=True)):
        if label:
            shown.append(Text(label.lower(), "dim"))
        shown += [Padding(_coloured(e, number, text, scale), (0, 2)), Text("")]
    shown += [_legend(e, scale), *_answer_legend(e), Text(""), *_ranking(e, scale), Text(""), *_footer(e)]
    return Group(*shown)


def beside_text(explanations: Sequence[Explanation]) -> RenderableType:
    """Explanations side by side, their colours and bars on one scale; below each other where the terminal is narrow."""
    scale = max(map(largest, explanations))
    return Beside(tuple(explanation_text(e, scale) for e in explanations))


@dataclass(frozen=True, slots=True)
class Beside:
    """Columns as far as there is room for them."""

    shown: tuple[RenderableType, ...]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        across = max(1, options.max_width // _COLUMN)
        for start in range(0, len(self.shown), across):
            grid = Table.grid(padding=(0, 2), expand=True)
            row = self.shown[start : start + across]
            for _ in range(min(across, len(self.shown))):
                grid.add_column(ratio=1)
            grid.add_row(*row)
            yield grid
            if start + across < len(self.shown):
                yield Text("")


def _header(e: Explanation) -> RenderableType:
    told = phrases.verdict(e)
    facts = {
        told.lead: Text.assemble((safe(told.said), "bold"), f" {safe(told.rest)}"),
        "Explained": Text(safe(f"{phrases.goal(e)}, {e.unit} by {e.unit}")),
        "Method": Text(safe(phrases.made_by(e))),
    }
    return _facts(facts)


def _coloured(e: Explanation, number: int, text: tuple[Piece, ...], scale: float) -> Text:
    shown = Text(overflow="fold")
    for piece, parts_of_piece in zip(text, parts(e, number, [piece.text for piece in text]), strict=True):
        score = piece_score(e, piece) if piece.units else 0.0
        style = scale_of(e.signed).terminal_style(level(score, scale)) if math.isfinite(score) else "reverse"
        for part in parts_of_piece:
            shown.append(safe(part.text), f"{style} underline".strip() if part.inside else style)
    return shown


def _answer_legend(e: Explanation) -> list[Text]:
    told = phrases.certainty(e)
    if told is None:
        return []
    return [Text.assemble(("underlined", "underline"), (f" the answer that is explained, {safe(told)}", "dim"))]


def _legend(e: Explanation, scale: float) -> Text:
    against, towards = phrases.ends(e)
    places = phrases.decimals(scale)
    colours = scale_of(e.signed)
    strip = Text.assemble(*((" ", colours.terminal_style(step)) for step in colours.steps(8)))
    low, high = (phrases.score(e, end, places) for end in (-scale if e.signed else 0.0, scale))
    return Text.assemble((safe(against), "dim"), f" {low} ", strip, f" {high} ", (safe(towards), "dim"))


def _ranking(e: Explanation, scale: float) -> list[RenderableType]:
    shown = strongest(e, TOP)
    places, unknown = phrases.decimals(scale), phrases.unknown_units(e)
    grid = Table.grid(padding=(0, 2))
    grid.add_column(justify="right")
    grid.add_column(no_wrap=True, min_width=2 * _HALF + 1)
    grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    for unit in shown:
        score = e.scores[unit]
        bar = Bar(level(score, scale) if math.isfinite(score) else 0.0, scale_of(e.signed))
        grid.add_row(phrases.score(e, score, places), bar, _named(e, unit, unit in unknown))
    rest = set(range(len(e.scores))) - set(shown)
    parts: list[RenderableType] = [grid]
    if rest:
        total = phrases.score(e, sum(e.scores[unit] for unit in sorted(rest)), places)
        parts.append(Text(safe(f"{phrases.count(len(rest), 'weaker ' + e.unit)} add up to {total}"), "dim"))
    return parts


def _named(e: Explanation, unit: int, unknown: bool) -> Text:
    """A unit in the ranking, with a word beside it if the model does not read what it says."""
    name = Text(safe(phrases.named(e.units[unit], 60)))
    return Text.assemble(name, (" (unknown to the model)", "dim")) if unknown else name


def _footer(e: Explanation) -> list[RenderableType]:
    facts = {"Value": Text(safe(phrases.value_change(e))), "Cost": Text(phrases.effort(e))}
    for label, fact in {
        "Unknown": phrases.unread(e),
        "Extended": phrases.extended(e),
        "Gap": phrases.gap(e),
        "Chosen": phrases.choice(e),
    }.items():
        if fact:
            facts[label] = Text(safe(fact))
    return [_facts(facts), *(Text(safe(f"Warning: {caution}."), "bold yellow") for caution in phrases.cautions(e))]


def _facts(facts: dict[str, Text]) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", min_width=9)
    grid.add_column(overflow="fold")
    for label, text in facts.items():
        grid.add_row(label, text)
    return grid
