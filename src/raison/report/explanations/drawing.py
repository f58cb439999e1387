"""An explanation as a standalone SVG image: the coloured text, and bars of its strongest units. Needs no library."""

import math
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.cells import cell_len

from raison.core.explanation import Explanation
from raison.report.explanations.layout import Piece, largest, piece_score, pieces, strongest, text_labels
from raison.report.style import phrases
from raison.report.style.colours import ink, level, scale_of
from raison.report.style.markup import Markup, html, joined

WIDTH, CELL, LINE, MARGIN = 760, 9, 28, 20
"""Of the image, a character, a line and the border, in pixels."""
TOP = 8
_ROOM = (WIDTH - 2 * MARGIN) // CELL
_INK, _SOFT = "#1b1f24", "#5b6470"
_BAR, _VALUE = 150, 100
"""The length of the longest bar, and where bars begin or have their middle."""


@dataclass(frozen=True, slots=True)
class _Word:
    """Characters between which no line breaks, the space after them, and their piece's score (None outside units)."""

    text: str
    space: str
    score: float | None

    @property
    def cells(self) -> int:
        return cell_len(self.text + self.space)


def svg(e: Explanation) -> str:
    """What was predicted and explained, the text in its colours, the scale, and the strongest units as bars.

    Characters are set on a grid, so that colours lie under them in any font. A paragraph that begins in a script from
    right to left runs that way.
    """
    scale = largest(e)
    rows: list[Markup] = []
    top = MARGIN + 6
    for line, colour in ((phrases.verdict(e).line, _INK), (f"{phrases.goal(e)}, {phrases.made_by(e)}", _SOFT)):
        rows.append(_text(phrases.shorten(line, _ROOM), MARGIN, top, colour))
        top += LINE
    for label, text in zip(text_labels(e), pieces(e), strict=True):
        if label:
            rows.append(_text(label, MARGIN, top, _SOFT))
            top += LINE
        for words in _lines(_words(e, text)):
            rows.append(_line(e, words, top, scale))
            top += LINE
    top += LINE // 2
    rows.append(_legend(e, top, scale))
    top += LINE
    for unit in strongest(e, TOP):
        rows.append(_bar(e, unit, top, scale))
        top += LINE
    told = f"{phrases.verdict(e).line}; {phrases.goal(e)}"
    return str(
        html(
            '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" width="{}" height="{}" role="img" '
            'aria-label="{}" font-family="DejaVu Sans Mono, Menlo, Consolas, monospace" font-size="15">\n'
            '<rect width="100%" height="100%" fill="#ffffff"/>\n{}\n</svg>\n',
            WIDTH, top, WIDTH, top, told, joined(rows, "\n"),
        )
    )  # fmt: skip


def _words(e: Explanation, text: Sequence[Piece]) -> Iterator[_Word | None]:
    """The text's words in order; None where a line ends."""
    for piece in text:
        score = piece_score(e, piece) if piece.units else None
        for blank, run in groupby(piece.text, str.isspace):
            held = "".join(run)
            if not blank:
                # A long word breaks anywhere.
                yield from (_Word(held[i : i + _ROOM], "", score) for i in range(0, len(held), _ROOM))
            elif "\n" in held:
                yield None
            else:
                yield _Word("", " ", score)


def _lines(words: Iterator[_Word | None]) -> Iterator[list[_Word]]:
    """Lines as wide as the image; white space at their ends stays there."""
    line: list[_Word] = []
    used = 0
    for word in words:
        if word is None or used + cell_len(word.text) > _ROOM:
            yield line
            line, used = [], 0
        if word is not None and (word.text or line):
            line.append(word)
            used += word.cells
    if line:
        yield line


def _line(e: Explanation, line: Sequence[_Word], top: int, scale: float) -> Markup:
    """A line of words, each over its colour."""
    backwards = _runs_left("".join(word.text for word in line))
    shown: list[Markup] = []
    cursor = 0
    for word in line:
        width = word.cells * CELL
        left = WIDTH - MARGIN - cursor - width if backwards else MARGIN + cursor
        cursor += width
        ground = "#ffffff"
        if word.score is not None and math.isfinite(word.score):
            ground = scale_of(e.signed).shade(level(word.score, scale))
            shown.append(html('<rect x="{}" y="{}" width="{}" height="22" fill="{}"/>', left, top - 16, width, ground))
        if word.text:
            # In a line from right to left a word begins at its right end, and brackets are mirrored.
            shown.append(
                html(
                    '<text x="{}" y="{}" direction="{}" textLength="{}" lengthAdjust="spacingAndGlyphs" fill="{}">{}'
                    "</text>",
                    left + width if backwards else left, top, "rtl" if backwards else "ltr",
                    cell_len(word.text) * CELL, ink(ground) if ground != "#ffffff" else _INK, word.text,
                )
            )  # fmt: skip
    return joined(shown)


def _runs_left(text: str) -> bool:
    """Whether the first letter with a direction runs from right to left."""
    kinds = (unicodedata.bidirectional(character) for character in text)
    return next((kind in ("R", "AL") for kind in kinds if kind in ("L", "R", "AL")), False)


def _legend(e: Explanation, top: int, scale: float) -> Markup:
    against, towards = phrases.ends(e)
    places, colours = phrases.decimals(scale), scale_of(e.signed)
    steps = colours.steps(8)
    strip = joined(
        html(
            '<rect x="{}" y="{}" width="14" height="14" fill="{}"/>',
            MARGIN + 14 * number,
            top - 12,
            colours.shade(step),
        )
        for number, step in enumerate(steps)
    )
    low, high = (phrases.score(e, end, places) for end in (-scale if e.signed else 0.0, scale))
    told = phrases.shorten(f"{low} {against} … {high} {towards}", _ROOM - 2 * len(steps))
    return joined([strip, _text(told, MARGIN + 14 * len(steps) + CELL, top, _SOFT)])


def _bar(e: Explanation, unit: int, top: int, scale: float) -> Markup:
    score = e.scores[unit]
    share = level(score, scale) if math.isfinite(score) else 0.0
    zero = MARGIN + _VALUE + (_BAR if e.signed else 0)
    width = round(_BAR * (1 if e.signed else 2) * abs(share), 1)
    value = html('<text x="{}" y="{}" text-anchor="end" fill="{}">{}</text>', MARGIN + _VALUE - CELL, top, _INK,
                 phrases.score(e, score, phrases.decimals(scale)))  # fmt: skip
    colour = scale_of(e.signed).shade(0.75 if share > 0 else -0.75)
    bar = html('<rect x="{}" y="{}" width="{}" height="12" fill="{}"/>', zero - width if share < 0 else zero, top - 11,
               width, colour)  # fmt: skip
    axis = html('<rect x="{}" y="{}" width="1" height="20" fill="{}"/>', zero, top - 15, _SOFT)
    left = MARGIN + _VALUE + 2 * _BAR + 2 * CELL
    name = phrases.named(e.units[unit], (WIDTH - MARGIN - left) // CELL)
    return joined([value, bar, axis, _text(name, left, top, _INK)])


def _text(text: str, left: int, top: int, colour: str) -> Markup:
    return html('<text x="{}" y="{}" fill="{}">{}</text>', left, top, colour, text)
