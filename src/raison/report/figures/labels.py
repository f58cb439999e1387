"""The labels of a plot's points: their places without overlaps, and the shortening of long ones.

Plain geometry, in points; y goes up.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from raison.report.style.phrases import shorten

Anchor = Literal["left", "right", "center"]
LabelBox = tuple[float, float, float, float]
"""left, bottom, right, top."""

HEIGHT = 12.0
ADVANCE = 5.9
"""Upper bound of the average letter width of a label, since the reader's font is unknown."""
_GAP = 7.0
_ANCHORS: dict[int, Anchor] = {1: "left", -1: "right", 0: "center"}
_SIDES = ((1, 0), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1), (0, 1), (0, -1))


@dataclass(frozen=True, slots=True)
class PlacedLabel:
    """The point where a text begins (anchor "left"), ends ("right") or has its middle ("center"), on its mid-line.

    `far` says that a line must lead from the point to its label.
    """

    x: float
    y: float
    anchor: Anchor
    far: bool


def place(
    points: Sequence[tuple[float, float]], texts: Sequence[str], bounds: LabelBox, obstacles: Sequence[LabelBox] = ()
) -> list[PlacedLabel]:
    """A label for each point: the nearest place, in a fixed order of sides, where it covers nothing.

    If there is no such place, the one that covers least.
    """
    taken = [*obstacles, *((x - 4, y - 4, x + 4, y + 4) for x, y in points)]
    placed = []
    for (x, y), text in zip(points, texts, strict=True):
        best = min(_candidates(x, y), key=lambda label: (_cost(_box(label, text), taken, bounds), label.far))
        taken.append(_box(best, text))
        placed.append(best)
    return placed


def spread(places: Sequence[float], gap: float = HEIGHT) -> list[float]:
    """Heights at least `gap` apart, in the same order, as near as possible to those wanted (least squares)."""
    # Imported here: a page without plots need not wait for it.
    from scipy.optimize import isotonic_regression

    order, gaps = np.argsort(places, kind="stable"), gap * np.arange(len(places))
    heights = np.empty(len(places))
    # Without the gaps, heights may be equal, but not fall.
    heights[order] = isotonic_regression(np.array(places)[order] - gaps).x + gaps
    return [float(height) for height in heights]


def shorten_apart(texts: Sequence[str], width: int) -> list[str]:
    """Each text on one line of at most `width` characters; texts that would then look alike lose what they share.

    A method's name and its bracket stay: "aml(…sufficiency', steps=10)".
    """
    by_look: dict[str, set[str]] = {}
    for text in texts:
        by_look.setdefault(shorten(text, width), set()).add(text)
    return [_apart(text, by_look[shorten(text, width)], width) for text in texts]


def _apart(text: str, alike: set[str], width: int) -> str:
    first, last = min(alike), max(alike)
    end = next((place for place, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    shared = first[:end]
    head = shared.partition("(")[0] + "(" if "(" in shared else ""
    start = max(len(head), *(shared.rfind(mark) + 1 for mark in "(_=', "))
    if len(alike) == 1 or start <= len(head):
        return shorten(text, width)
    return f"{head}…{shorten(text[start:], width - len(head) - 1)}"


def _candidates(x: float, y: float) -> Iterator[PlacedLabel]:
    for ring in range(8):
        for right, up in _SIDES:
            across, along = right * (_GAP + 3 * ring), up * (_GAP + 3 + HEIGHT * ring)
            if not up:
                # Straight to the side there is only one place; further rings would move away needlessly.
                along = (ring % 2 * 2 - 1) * HEIGHT * ring / 2
            yield PlacedLabel(x + across, y + along, _ANCHORS[right], ring > 0)


def _box(label: PlacedLabel, text: str) -> LabelBox:
    width = ADVANCE * len(text)
    left = label.x - {"left": 0.0, "right": width, "center": width / 2}[label.anchor]
    return left, label.y - HEIGHT / 2, left + width, label.y + HEIGHT / 2


def _cost(box: LabelBox, taken: Sequence[LabelBox], bounds: LabelBox) -> float:
    inside = _overlap(box, bounds)
    outside = (box[2] - box[0]) * (box[3] - box[1]) - inside
    return 4 * outside + sum(_overlap(box, other) for other in taken)


def _overlap(one: LabelBox, other: LabelBox) -> float:
    across = min(one[2], other[2]) - max(one[0], other[0])
    along = min(one[3], other[3]) - max(one[1], other[1])
    return across * along if across > 0 and along > 0 else 0.0
