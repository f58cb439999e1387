"""Explanations for the terminal. rich decides about colour: none with NO_COLOR or into a file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text

from raison.core.results.explanation import Explanation
from raison.core.results.generation import GenerationExplanation
from raison.report.explanations.layout import Bar, ExplanationLayout, MatrixRow, ShownSpan, TextLayout, layout
from raison.report.explanations.output_layout import OutputLayout, output_layout
from raison.report.explanations.several import TargetsLayout, apart, common_scale, targets_layout
from raison.report.style import phrases
from raison.report.style.colours import Scale
from raison.report.style.phrases import AnyExplanation
from raison.report.style.terminal_text import facts_grid, plain, safe

STRONGEST = 3
"""Number of units named next to an output token."""
ACROSS = 5
"""Maximum number of targets side by side."""
_HALF = 14
_UNIT = 20
"""Minimum width in characters of a unit beside its bar, with the space between the columns."""
_COLUMN = 60
"""Minimum width in characters of an explanation next to another one."""


@dataclass(frozen=True, slots=True)
class DrawnBar:
    """A bar from a line: to the right for positive levels, to the left for negative ones.

    The line is in the middle, or at the left if no level is negative.
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


@dataclass(frozen=True, slots=True)
class Beside:
    """As many columns as fit."""

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


@dataclass(frozen=True, slots=True)
class Ranking:
    """The strongest units with their bars; where there is no room for bars, the numbers and the units alone."""

    shown: ExplanationLayout

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        shown = self.shown
        widest = max((len(bar.value) for bar in shown.bars), default=0)
        drawn = options.max_width >= widest + 2 * _HALF + 1 + _UNIT
        grid = Table.grid(padding=(0, 2))
        grid.add_column(justify="right", no_wrap=True, min_width=widest)
        if drawn:
            grid.add_column(no_wrap=True, min_width=2 * _HALF + 1)
        grid.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        for bar in shown.bars:
            bars = (DrawnBar(bar.level, shown.scale),) if drawn else ()
            grid.add_row(bar.value, *bars, _named(shown.e, bar))
        yield grid


def explanation_text(e: AnyExplanation) -> RenderableType:
    """The prediction or output, the coloured text, its strongest units, and the cost."""
    return _output(output_layout(e)) if isinstance(e, GenerationExplanation) else _explanation(layout(e))


def beside_text(explanations: Sequence[Explanation]) -> RenderableType:
    """Explanations side by side, their colours and bars on one scale if they have one; one below the other if the
    terminal is narrow."""
    scale = common_scale(explanations)
    shown = Beside(tuple(_explanation(layout(e, scale)) for e in explanations))
    return Group(shown, *_warnings([apart(explanations)])) if scale is None else shown


def targets_text(explanations: Sequence[Explanation]) -> RenderableType:
    """Targets of one text: the prediction, and the units in the text's order with a column for each target."""
    shown = targets_layout(explanations)
    e, starts = shown.e, range(0, len(shown.rows), ACROSS)
    grids = [part for start in starts for part in (Text(""), _targets(shown, shown.rows[start : start + ACROSS]))]
    return Group(
        facts_grid(_head(e, _goal(shown))),
        *grids,
        Text(""),
        facts_grid({"Cost": f"{phrases.effort(e)} for {shown.rows[0].text} alone"}),
        *_warnings(shown.cautions),
    )


def explanation_plain(e: AnyExplanation) -> str:
    """The terminal output without escape codes."""
    return plain(explanation_text(e))


def _explanation(shown: ExplanationLayout) -> RenderableType:
    e = shown.e
    texts = [part for passage in shown.passages for part in (*_passage(passage, shown.scale), Text(""))]
    # On the page these are above the text, or folded with the rest.
    below = ("Value", "Cost", "Server", "Noise", "Unknown", "Extended", "Gap", "Chosen")
    return Group(
        facts_grid(_head(e, _goal(shown))),
        Text(""),
        *texts,
        _legend(shown),
        *_answer_legend(e),
        Text(""),
        Ranking(shown),
        *([Text(safe(shown.rest), "dim")] if shown.rest else []),
        Text(""),
        facts_grid(_known(shown.facts, below)),
        *_warnings(phrases.cautions(e)),
    )


def _output(shown: OutputLayout) -> RenderableType:
    e = shown.e
    says = "" if e.signed else ": stronger means more important"
    written = Text(safe(phrases.shorten(e.output, 200)), "bold")
    notes = {name.removeprefix("Note: "): fact for name, fact in shown.facts.items() if name.startswith("Note: ")}
    return Group(
        facts_grid({"Written": written, "Explained": _goal(shown), "Method": e.method}),
        Text(""),
        Text(f"colours of the prompt are for the whole output{says}", "dim"),
        *_passage(shown.whole.passages[0], shown.scale),
        Text(""),
        _tokens(shown),
        Text(""),
        facts_grid({**_known(shown.facts, ("Cost", "Removal", "Server", "Noise")), **notes}),
        *_warnings(phrases.cautions(e)),
    )


def _known(facts: Mapping[str, object], names: Sequence[str]) -> dict[str, object]:
    return {name: facts[name] for name in names if name in facts}


def _head(e: Explanation, goal: str) -> dict[str, object]:
    verdict = phrases.verdict(e)
    words = Text.assemble((safe(verdict.said), "bold"), f" {safe(verdict.rest)}")
    return {verdict.lead: words, "Explained": goal, "Method": phrases.made_by(e)}


def _goal(shown: ExplanationLayout | OutputLayout | TargetsLayout) -> str:
    return f"{shown.goal}, {shown.e.unit} by {shown.e.unit}"


def _warnings(cautions: Sequence[str]) -> list[Text]:
    return [Text(safe(f"Warning: {caution}."), "bold yellow") for caution in cautions]


def _passage(passage: TextLayout, scale: Scale) -> list[RenderableType]:
    """A text, each of its spans on its colour and the explained answer underlined."""
    text = Text(overflow="fold")
    for span in passage.spans:
        style = _style(span, scale)
        for part in span.parts:
            text.append(safe(part.text), f"{style} underline".strip() if part.inside else style)
    label = [Text(passage.label.lower(), "dim")] if passage.label else []
    return [*label, Padding(text, (0, 2))]


def _style(span: ShownSpan, scale: Scale) -> str:
    if not span.is_unit:
        return ""
    return "reverse" if span.level is None else scale.terminal_style(span.level)


def _answer_legend(e: Explanation) -> list[Text]:
    certainty = phrases.certainty(e)
    if certainty is None:
        return []
    return [Text.assemble(("underlined", "underline"), (f" {safe(certainty)}", "dim"))]


def _legend(shown: ExplanationLayout) -> Text:
    ends, scale = shown.ends, shown.scale
    strip = Text.assemble(*((" ", scale.terminal_style(step)) for step in scale.steps(8)))
    low, high = (safe(ends.lowest), "dim"), (safe(ends.highest), "dim")
    return Text.assemble(low, f" {ends.low} ", strip, f" {ends.high} ", high)


def _named(e: Explanation, bar: Bar) -> Text:
    """A unit in the ranking, with a remark if the model's vocabulary lacks it."""
    name = Text(safe(phrases.named(e.units[bar.unit], 60)))
    return Text.assemble(name, (" (unknown to the model)", "dim")) if bar.unread else name


def _tokens(shown: OutputLayout) -> Table:
    contrast = shown.e.contrast is not None
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column("output", no_wrap=True)
    if contrast:
        grid.add_column("and not", no_wrap=True)
    grid.add_column("probability", justify="right", no_wrap=True)
    grid.add_column(Text(safe(f"strongest {shown.e.unit}s")), ratio=1, overflow="fold")
    for row in shown.rows:
        against = [Text(safe(row.against))] if contrast else []
        grid.add_row(Text(safe(row.text), "bold"), *against, row.probability, _strongest(shown, row))
    return grid


def _strongest(shown: OutputLayout, row: MatrixRow) -> Text:
    line = Text()
    ranked = [cell for cell in row.cells if cell.ranked]
    for cell in sorted(ranked, key=lambda cell: -abs(cell.level))[:STRONGEST]:
        name = safe(phrases.shorten(shown.e.units[cell.unit].label, 30))
        line.append(name, shown.scale.terminal_style(cell.level)).append(f" {cell.value}  ", "dim")
    return line


def _targets(shown: TargetsLayout, rows: Sequence[MatrixRow]) -> Table:
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column(shown.e.unit, overflow="ellipsis", max_width=24)
    for row in rows:
        grid.add_column(Text(safe(row.text)), justify="right", overflow="fold")
    for unit in shown.strong:
        cells = [row.cells[unit] for row in rows]
        styles = [shown.scale.terminal_style(cell.level) if cell.finite else "reverse" for cell in cells]
        values = [Text(cell.value, style) for cell, style in zip(cells, styles, strict=True)]
        grid.add_row(Text(safe(shown.names[unit])), *values)
    left = len(shown.names) - len(shown.strong)
    if left:
        grid.add_row(Text(phrases.count(left, f"weaker {shown.e.unit}"), "dim"))
    return grid
