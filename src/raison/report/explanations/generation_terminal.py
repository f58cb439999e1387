"""Explanations of an output for the terminal: the prompt in colours, and each output token's strongest units."""

import math

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from raison.core.generation import GenerationExplanation
from raison.core.unknown import NOTE, caution_of_text
from raison.report.explanations.generation_page import goal, visible
from raison.report.explanations.layout import largest, piece_score, pieces
from raison.report.style import phrases
from raison.report.style.colours import level, scale_of
from raison.report.style.terminal_text import plain, safe

TOP = 3


def generation_text(e: GenerationExplanation) -> RenderableType:
    """What was written, the prompt coloured for the whole output, and a line for each output token."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(style="dim", min_width=9)
    facts.add_column(overflow="fold")
    facts.add_row("Written", Text(safe(phrases.shorten(e.output, 200)), "bold"))
    facts.add_row("Explained", Text(safe(f"{goal(e)}, {e.unit} by {e.unit}")))
    facts.add_row("Method", Text(safe(e.method)))
    cost = Table.grid(padding=(0, 2))
    cost.add_column(style="dim", min_width=9)
    cost.add_column(overflow="fold")
    backward = f", {phrases.count(e.gradients, 'gradient')}" if e.gradients else ""
    cost.add_row("Cost", Text(f"{phrases.count(e.evaluations, 'evaluation')}{backward}, {phrases.seconds(e.seconds)}"))
    cost.add_row("Removal", Text(safe(f"{e.removal}, for an absent {e.unit}")))
    for name, value in e.notes.items():
        if name == NOTE:
            continue
        label = Text(safe(name.replace("_", " ")))
        cost.add_row(label, Text(safe(f"{value:+.2g}" if isinstance(value, float) else str(value))))
    says = "" if e.signed else ": the stronger, the more important"
    heading = Text(f"colours of the prompt are for the whole output{says}", "dim")
    caution = caution_of_text(e.notes)
    warning = [] if caution is None else [Text(safe(f"Warning: {caution}."), "bold yellow")]
    shown: list[RenderableType] = [
        facts,
        Text(""),
        heading,
        Padding(_coloured(e), (0, 2)),
        Text(""),
        _tokens(e),
        Text(""),
        cost,
        *warning,
    ]
    return Group(*shown)


def generation_plain(e: GenerationExplanation) -> str:
    """What a terminal would show, without any escape code."""
    return plain(generation_text(e))


def _coloured(e: GenerationExplanation) -> Text:
    whole = e.whole()
    scale = largest(whole)
    shown = Text(overflow="fold")
    for piece in pieces(whole)[0]:
        score = piece_score(whole, piece) if piece.units else 0.0
        shown.append(safe(piece.text), scale_of(e.signed).terminal_style(level(score, scale)))
    return shown


def _tokens(e: GenerationExplanation) -> Table:
    scale = max((abs(score) for row in e.scores for score in row), default=0.0)
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column("output", no_wrap=True)
    if e.contrast is not None:
        grid.add_column("and not", no_wrap=True)
    grid.add_column("probability", justify="right", no_wrap=True)
    grid.add_column(Text(safe(f"strongest {e.unit}s")), ratio=1, overflow="fold")
    for token, row in zip(e.tokens, e.scores, strict=True):
        against = [] if e.contrast is None else [Text(safe(visible(token.against or "")))]
        grid.add_row(Text(safe(visible(token.text)), "bold"), *against, phrases.percent(token.probability),
                     _strongest(e, row, scale))  # fmt: skip
    return grid


def _strongest(e: GenerationExplanation, row: tuple[float, ...], scale: float) -> Text:
    order = sorted(range(len(row)), key=lambda unit: -abs(row[unit]))[:TOP]
    line = Text()
    for unit in order:
        if math.isfinite(row[unit]):
            name = safe(phrases.shorten(e.units[unit].label, 30))
            line.append(name, scale_of(e.signed).terminal_style(level(row[unit], scale)))
            line.append(f" {phrases.score(e, row[unit], phrases.decimals(scale))}  ", "dim")
    return line
