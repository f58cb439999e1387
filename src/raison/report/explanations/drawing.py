"""An explanation as a standalone SVG image: the coloured text, and bars of its strongest units. Needs no library."""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.cells import cell_len

from raison.core.results.explanation import Explanation
from raison.report.explanations.layout import ExplanationLayout, ShownSpan, layout
from raison.report.style import phrases
from raison.report.style.colours import WHITE, ink
from raison.report.style.markup import rendered

WIDTH, CELL, LINE, MARGIN = 760, 9, 28, 20
"""Widths of the image and of a character, the height of a line, and the width of the border, in pixels."""
_ROOM = (WIDTH - 2 * MARGIN) // CELL
_INK, _SOFT = "#1b1f24", "#5b6470"
_BAR, _VALUE = 150, 100
"""The length of the longest bar, and the place where bars begin or have their middle."""


@dataclass(frozen=True, slots=True)
class _DrawnWord:
    """Characters without a line break between them, the space after them, and their span."""

    text: str
    space: str
    span: ShownSpan

    @property
    def cells(self) -> int:
        return cell_len(self.text + self.space)


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle; a negative `top` is above the baseline of the row's text."""

    left: float
    top: int
    width: float
    height: int
    colour: str


@dataclass(frozen=True, slots=True)
class TextLine:
    """Characters that begin or end at `left`. A word of the text has a `length` and may run from right to left."""

    left: float
    text: str
    colour: str = _INK
    length: int = 0
    backwards: bool = False
    ends: bool = False


_NOT_XML = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF], "\ufffd")
"""Characters that XML 1.0 cannot hold and HTML can."""


@dataclass(frozen=True, slots=True)
class DrawnRow:
    """The boxes and lines of text of one row."""

    boxes: Sequence[Box]
    lines: Sequence[TextLine]


def svg(e: Explanation) -> str:
    """The prediction and the target, the coloured text, the scale, and the strongest units as bars.

    Characters are placed on a grid, so that colours match them in any font. A paragraph that begins with a
    right-to-left script runs from right to left.
    """
    shown = layout(e)
    prediction, goal = phrases.verdict(e).line, phrases.goal(e)
    above = [_label(prediction, _INK), _label(f"{goal}, {phrases.made_by(e)}"), *_texts(shown)]
    below = [_legend(shown), *_bars(shown)]
    tops = [MARGIN + 6 + LINE * number + LINE // 2 * (number >= len(above)) for number in range(len(above + below) + 1)]
    rows = list(zip(tops, above + below, strict=False))
    values = {"width": WIDTH, "height": tops[-1], "label": f"{prediction}; {goal}", "rows": rows}
    return str(rendered("drawing.svg", values)).translate(_NOT_XML) + "\n"


def _label(text: str, colour: str = _SOFT) -> DrawnRow:
    return DrawnRow((), (TextLine(MARGIN, phrases.shorten(text, _ROOM), colour),))


def _texts(shown: ExplanationLayout) -> Iterator[DrawnRow]:
    for passage in shown.passages:
        if passage.label:
            yield _label(passage.label)
        yield from (_row(shown, words) for words in _lines(_words(passage.spans)))


def _words(spans: Sequence[ShownSpan]) -> Iterator[_DrawnWord | None]:
    """The text's words in order; None where a line ends."""
    for span in spans:
        for blank, run in groupby(span.piece.text, str.isspace):
            held = "".join(run)
            if not blank:
                # A long word may break anywhere.
                yield from (_DrawnWord(held[i : i + _ROOM], "", span) for i in range(0, len(held), _ROOM))
            else:
                yield None if "\n" in held else _DrawnWord("", " ", span)


def _lines(words: Iterator[_DrawnWord | None]) -> Iterator[list[_DrawnWord]]:
    """Lines as wide as the image; white space at their ends stays there."""
    line: list[_DrawnWord] = []
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


def _row(shown: ExplanationLayout, words: Sequence[_DrawnWord]) -> DrawnRow:
    """A line of words, each over its colour."""
    backwards = _runs_left("".join(word.text for word in words))
    boxes, lines = [], []
    cursor = MARGIN
    for word in words:
        width = word.cells * CELL
        left = WIDTH - cursor - width if backwards else cursor
        cursor += width
        colour = _INK
        if word.span.level is not None:
            ground = shown.scale.shade(word.span.level)
            boxes.append(Box(left, -16, width, 22, ground))
            colour = ink(ground) if ground != WHITE else _INK
        if word.text:
            # In a line from right to left a word begins at its right end, and brackets are mirrored.
            start = left + width if backwards else left
            lines.append(TextLine(start, word.text, colour, cell_len(word.text) * CELL, backwards))
    return DrawnRow(boxes, lines)


def _runs_left(text: str) -> bool:
    """Whether the first letter with a direction runs from right to left."""
    kinds = (unicodedata.bidirectional(character) for character in text)
    return next((kind in ("R", "AL") for kind in kinds if kind in ("L", "R", "AL")), False)


def _legend(shown: ExplanationLayout) -> DrawnRow:
    ends, steps = shown.ends, shown.scale.steps(8)
    strip = [Box(MARGIN + 14 * number, -12, 14, 14, shown.scale.shade(step)) for number, step in enumerate(steps)]
    # Long names are shortened, the numbers never.
    room = (_ROOM - 2 * len(steps) - len(f"{ends.low}  … {ends.high} ")) // 2
    low, high = (phrases.shorten(name, room) for name in (ends.lowest, ends.highest))
    left = MARGIN + 14 * len(steps) + CELL
    return DrawnRow(strip, (TextLine(left, f"{ends.low} {low} … {ends.high} {high}".strip(), _SOFT),))


def _bars(shown: ExplanationLayout) -> Iterator[DrawnRow]:
    signed = shown.scale.signed
    zero = MARGIN + _VALUE + (_BAR if signed else 0)
    left = MARGIN + _VALUE + 2 * _BAR + 2 * CELL
    for bar in shown.bars:
        width = round(_BAR * (1 if signed else 2) * abs(bar.level), 1)
        colour = shown.scale.shade(0.75 if bar.level > 0 else -0.75)
        name = phrases.named(shown.e.units[bar.unit], (WIDTH - MARGIN - left) // CELL)
        boxes = (Box(zero - width if bar.level < 0 else zero, -11, width, 12, colour), Box(zero, -15, 1, 20, _SOFT))
        # The anchor of a name from right to left is its end, on the left.
        backwards = _runs_left(name)
        named = TextLine(left, name, backwards=backwards, ends=backwards)
        yield DrawnRow(boxes, (TextLine(MARGIN + _VALUE - CELL, bar.value, ends=True), named))
