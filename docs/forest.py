"""A forest plot of claims as SVG text: differences with their intervals, the claim's side on the right."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

COLOURS = {"holds": "#0072B2", "fails": "#D55E00"}
"""Told apart by colour-blind readers, too."""
UNDECIDED = "#777777"
WIDTH, LABELS, MARGIN, STEP, TOP = 1160, 700, 20, 20, 44


@dataclass(frozen=True, slots=True)
class Effect:
    """One line of the plot. A claim that something is below something else is turned by `turned`."""

    label: str
    verdict: str
    mean: float
    low: float
    high: float

    def turned(self) -> "Effect":
        """The same with the sign of the other side."""
        return Effect(self.label, self.verdict, -self.mean, -self.high, -self.low)


def forest(effects: Sequence[Effect]) -> str:
    """The whole image. Intervals that leave the axis of -1 to 1 end at its ends."""
    height = TOP + STEP * len(effects) + 30
    axis = "".join(_tick(value, height) for value in (-1.0, -0.5, 0.0, 0.5, 1.0))
    lines = "".join(_line(effect, TOP + STEP * number) for number, effect in enumerate(effects))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        f'font-size="12"><title>Effects of one claim for each question</title>'
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>'
        f'<text x="{_x(-1):.0f}" y="18" fill="#333333">against the claim</text>'
        f'<text x="{_x(1):.0f}" y="18" text-anchor="end" fill="#333333">for the claim</text>{axis}{lines}</svg>\n'
    )


def _x(value: float) -> float:
    space = WIDTH - LABELS - 2 * MARGIN
    return LABELS + MARGIN + space * (min(max(value, -1.0), 1.0) + 1) / 2


def _tick(value: float, height: int) -> str:
    place, colour = _x(value), "#333333" if not value else "#DDDDDD"
    return (
        f'<line x1="{place:.1f}" x2="{place:.1f}" y1="26" y2="{height - 24}" stroke="{colour}"/>'
        f'<text x="{place:.1f}" y="{height - 8}" text-anchor="middle" fill="#333333">{value:g}</text>'
    )


def _line(effect: Effect, y: int) -> str:
    colour = COLOURS.get(effect.verdict, UNDECIDED)
    return (
        f'<text x="{LABELS}" y="{y + 4}" text-anchor="end" fill="#111111">{escape(effect.label)}</text>'
        f'<line x1="{_x(effect.low):.1f}" x2="{_x(effect.high):.1f}" y1="{y}" y2="{y}" stroke="{colour}" '
        f'stroke-width="2"/><circle cx="{_x(effect.mean):.1f}" cy="{y}" r="4" fill="{colour}"/>'
    )
