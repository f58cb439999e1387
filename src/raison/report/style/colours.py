"""The two colour scales of scores; white (or a dark page's background) is zero on both.

On the signed one red speaks for the target and blue against it, the convention of the field. The shades are
ColorBrewer's RdBu, which people with any common colour vision deficiency can distinguish; numbers and signs always
accompany the colours. Scores that are never below zero show how much a unit matters but not in which direction: they
get a third hue, purple.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

WHITE = "#ffffff"
BLACK = "#000000"
DARK = "#16191f"
"""The background of a dark page, which replaces white as the colour of zero."""

SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Colours of lines in one plot, from Okabe and Ito's set for all kinds of colour vision, without yellow and black,
which are hard to see on a light or a dark background.
"""

SHADES = 20
"""Shades between zero and an end of a scale's palette."""

Stops = dict[str, tuple[str, str, str, str]]
"""Shades from near zero to the strongest, by background."""

_FOR: Stops = {WHITE: ("#fddbc7", "#f4a582", "#d6604d", "#b2182b"), DARK: ("#471f22", "#7c2a28", "#b5433a", "#ee6a50")}
_AGAINST: Stops = {
    WHITE: ("#d1e5f0", "#92c5de", "#4393c3", "#2166ac"),
    DARK: ("#182f45", "#1f4b73", "#2f71a8", "#57a3dc"),
}
_AMOUNT: Stops = {
    WHITE: ("#efdff1", "#d2acd9", "#a165b0", "#6a1b7d"),
    DARK: ("#36203e", "#5d336b", "#9058a4", "#d096e2"),
}


def peak(scores: Iterable[float]) -> float:
    """The largest absolute finite score; zero if there is none."""
    return max((abs(score) for score in scores if math.isfinite(score)), default=0.0)


def level(score: float, largest: float) -> float:
    """A score on the scale from -1 to 1 on which zero stays zero."""
    return max(-1.0, min(1.0, score / largest)) if largest > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Scale:
    """Colours of levels: from -1 to 1 on the signed scale, from 0 to 1 on the other."""

    signed: bool

    def shade(self, value: float, ground: str = WHITE) -> str:
        """The colour of a level, as hex."""
        stops = (ground, *self._side(value)[ground])
        place = min(abs(value), 1.0) * (len(stops) - 1)
        first = min(int(place), len(stops) - 2)
        pairs = zip(_channels(stops[first]), _channels(stops[first + 1]), strict=True)
        return "#" + "".join(f"{round(a + (b - a) * (place - first)):02x}" for a, b in pairs)

    def css(self, value: float) -> str:
        """Background and text colour of a level as CSS variables, first on a light page and then on a dark one."""
        light, dark = self.shade(value, WHITE), self.shade(value, DARK)
        return f"--l:{light};--m:{ink(light)};--d:{dark};--e:{ink(dark)}"

    def terminal_style(self, value: float) -> str:
        """The style of a unit in a terminal, as rich names it; none near zero.

        There the terminal's own background means zero: its colour cannot be queried, and on a dark one white would be
        more prominent than the strongest red.
        """
        background = self.shade(value)
        return "" if abs(value) < 0.08 else f"{ink(background)} on {background}"

    def steps(self, count: int) -> list[float]:
        """Levels from one end of the scale to the other, with `count` steps on each side of zero."""
        return [step / count for step in range(-count if self.signed else 0, count + 1)]

    def gradient(self) -> str:
        """The whole scale as a CSS gradient, from its low end to its high one, in the page's light or dark scheme."""
        stops = ", ".join(f"light-dark({self.shade(level)}, {self.shade(level, DARK)})" for level in self.steps(4))
        return f"linear-gradient(to right, {stops})"

    def palette(self) -> list[str]:
        """Styles from one end of the scale to the other, among which a page's script picks by `place`."""
        return [self.css(step) for step in self.steps(SHADES)]

    def place(self, value: float) -> int:
        """The place of a level in the palette."""
        return round(value * SHADES) + (SHADES if self.signed else 0)

    def _side(self, value: float) -> Stops:
        if not self.signed:
            return _AMOUNT
        return _FOR if value > 0 else _AGAINST


SIGNED = Scale(signed=True)


def ink(background: str) -> str:
    """Black or white text, whichever reads better. The better of the two always has a contrast above 4.5:1."""
    return max(BLACK, WHITE, key=lambda colour: contrast(colour, background))


def contrast(first: str, second: str) -> float:
    """Contrast ratio of two colours as WCAG 2 defines it, from 1 to 21."""
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def _channels(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _luminance(colour: str) -> float:
    red, green, blue = (
        channel / 255 / 12.92 if channel <= 10 else ((channel / 255 + 0.055) / 1.055) ** 2.4
        for channel in _channels(colour)
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
