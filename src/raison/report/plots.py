"""Plots as SVG that stands inside a page: it follows the page's light or dark ground and its font.

matplotlib (the extra `report`) is imported when a plot is drawn; the caller's settings and figures stay as they are.
"""

import io
import math
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from raison.core.errors import DataError
from raison.core.results import Summary
from raison.report.colours import SERIES
from raison.report.labels import Box, place, spread
from raison.report.markup import NOTHING, Markup, drawing, html
from raison.report.phrases import shorten
from raison.runs.statistics import Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#010203"
"""Stands for the page's own text colour until the SVG is written."""
GREY = "#808080"
WIDTH, HEIGHT = 480, 330
FONT = 11
LABEL = 30
"""Letters of a label that are shown."""
_LEFT, _RIGHT, _BOTTOM, _TOP = 58, 12, 46, 30
_SETTINGS = {
    "svg.fonttype": "none",
    "font.family": "DejaVu Sans",
    "font.size": FONT,
    "text.parse_math": False,
    "text.color": INK,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "grid.color": GREY,
    "grid.alpha": 0.25,
    "lines.linewidth": 1.6,
}


@dataclass(frozen=True, slots=True)
class Line:
    """A method's values over models; None where it has none."""

    method: str
    values: tuple[Summary | None, ...]


def require() -> None:
    """Raises DataError where matplotlib is missing."""
    if find_spec("matplotlib") is None:
        raise DataError("plots need matplotlib: pip install 'raison[report]', or leave them out with --no-plots.")


def pareto_plot(name: str, metric: str, higher: bool, points: Sequence[Point]) -> Markup:
    """A metric against passes per text, the front of unbeaten methods drawn through. `name` is unique on the page."""
    shown = [point for point in points if math.isfinite(point.cost) and math.isfinite(point.scores.summary.mean)]
    title = f"{metric} {'↑' if higher else '↓'}"
    with new_figure(_RIGHT) as (figure, axes):
        axes.set_title(title, loc="left", fontsize=FONT, fontweight="bold")
        axes.set_xlabel("passes per text (evaluations + 2 × gradients)")
        _cost_axis(axes, [point.cost for point in shown])
        front = sorted((point for point in shown if point.best), key=lambda point: point.cost)
        means = [point.scores.summary.mean for point in front]
        axes.step([point.cost for point in front], means, where="post", color=SERIES[0], alpha=0.6)
        for point in shown:
            _point(axes, point)
        axes.grid(axis="y")
        axes.margins(0.06, 0.1)
        _label_points(axes, shown)
        return as_svg(figure, name, f"{title} against passes per text")


def models_plot(name: str, metric: str, higher: bool, models: Sequence[str], lines: Sequence[Line]) -> Markup:
    """A metric over models in the study's order, one line a method, its 95 % interval as a band."""
    title = f"{metric} {'↑' if higher else '↓'}"
    with new_figure(20 + 5.9 * max(len(shorten(line.method, LABEL)) for line in lines)) as (figure, axes):
        axes.set_title(title, loc="left", fontsize=FONT, fontweight="bold")
        axes.set_xticks(range(len(models)), [shorten(model, max(6, 48 // len(models))) for model in models])
        axes.margins(0.06, 0.08)
        axes.grid(axis="y")
        for number, line in enumerate(lines):
            _band(axes, line, *look_of(number, line.method))
        _label_ends(axes, lines)
        return as_svg(figure, name, f"{title} over models")


def spread_plot(name: str, title: str, rows: Sequence[tuple[str, Sequence[float]]]) -> Markup:
    """Each row's distribution: the median as a dot, from the first to the third quartile, 5th to 95th percentile."""
    longest = max(len(shorten(label, LABEL)) for label, _ in rows)
    with new_figure(_RIGHT, left=16 + 5.9 * longest) as (figure, axes):
        axes.set_title(title, loc="left", fontsize=FONT, fontweight="bold")
        places = range(len(rows), 0, -1)
        for place, (_, values) in zip(places, rows, strict=True):
            low, first, middle, third, high = np.percentile(values, [5, 25, 50, 75, 95])
            axes.hlines(place, low, high, color=SERIES[0], linewidth=1)
            axes.hlines(place, first, third, color=SERIES[0], linewidth=7, alpha=0.5)
            axes.plot([middle], [place], "o", markersize=6, color=INK)
        axes.set_yticks(list(places), [shorten(label, LABEL) for label, _ in rows])
        axes.margins(0.04, 0.12)
        axes.grid(axis="x")
        return as_svg(figure, name, title)


def _point(axes: "Axes", point: Point) -> None:
    summary = point.scores.summary
    colour = SERIES[0] if point.best else GREY
    if math.isfinite(summary.low) and math.isfinite(summary.high):
        axes.vlines(point.cost, summary.low, summary.high, color=colour, alpha=0.6, linewidth=1)
    # Hollow: the metric judges maps that it chose itself.
    fill = "none" if point.row.selected_by else colour
    axes.plot([point.cost], [summary.mean], "o", markersize=6, markeredgecolor=colour, markerfacecolor=fill)


def _cost_axis(axes: "Axes", costs: Sequence[float]) -> None:
    """Logarithmic where costs spread; a cost of zero, as that of random scores, still has its place."""
    from matplotlib.ticker import FuncFormatter

    positive = [cost for cost in costs if cost > 0]
    if positive and max(positive) > 20 * max(1.0, min(positive)):
        ticks = [0] * (min(costs) <= 0) + [10**k for k in range(math.ceil(math.log10(max(positive))) + 1)]
        axes.set_xscale("symlog", linthresh=1, linscale=0.4)
        axes.set_xticks(ticks, minor=False)
        axes.set_xticks([], minor=True)
        lowest = -0.4 if min(costs) <= 0 else 0.7 * min(positive)
        axes.set_xlim(lowest, 1.5 * max(positive))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))


def _label_points(axes: "Axes", points: Sequence[Point]) -> None:
    spots = [spot_of(axes, point.cost, point.scores.summary.mean) for point in points]
    bars = [_bar(axes, point) for point in points] + _steps(axes, points)
    texts = [shorten(point.row.method, LABEL) for point in points]
    bounds = (_LEFT + 2.0, _BOTTOM + 2.0, WIDTH - 2.0, HEIGHT - _TOP + 8.0)
    for (x, y), text, label in zip(spots, texts, place(spots, texts, bounds, bars), strict=True):
        end = ({"left": 0.0, "right": 1.0, "center": 0.5}[label.anchor], 0.5)
        line = {"arrowstyle": "-", "color": GREY, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3, "relpos": end}
        axes.annotate(
            text,
            (x, y),
            (label.x, label.y),
            xycoords="figure points",
            textcoords="figure points",
            ha=label.anchor,
            va="center",
            fontsize=FONT - 1.5,
            arrowprops=line if label.far else None,
            annotation_clip=False,
        )


def _label_ends(axes: "Axes", lines: Sequence[Line]) -> None:
    ends = [next(((i, s.mean) for i, s in reversed(list(enumerate(line.values))) if s), (0, 0.0)) for line in lines]
    spots = [spot_of(axes, *end) for end in ends]
    right = axes.bbox.x1 + 8
    for number, (line, (x, y), height) in enumerate(zip(lines, spots, spread([y for _, y in spots]), strict=True)):
        colour = look_of(number, line.method)[0]
        axes.annotate(
            shorten(line.method, LABEL),
            (x, y),
            (right, height),
            xycoords="figure points",
            textcoords="figure points",
            va="center",
            fontsize=FONT - 1.5,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.8,
                "shrinkA": 1,
                "shrinkB": 2,
                "relpos": (0, 0.5),
            },
            annotation_clip=False,
        )


def _band(axes: "Axes", line: Line, colour: str, style: str, marker: str) -> None:
    there = [(place, summary) for place, summary in enumerate(line.values) if summary is not None]
    x, means = [place for place, _ in there], [summary.mean for _, summary in there]
    axes.fill_between(x, [s.low for _, s in there], [s.high for _, s in there], color=colour, alpha=0.13, linewidth=0)
    axes.plot(x, means, linestyle=style, marker=marker, markersize=5, color=colour)


def look_of(number: int, method: str) -> tuple[str, str, str]:
    """Colour, line and marker. Random is grey and dotted everywhere: it is the ground that others stand on."""
    if method.startswith("random"):
        return GREY, ":", "x"
    return SERIES[number % len(SERIES)], ("-", "--", "-.")[number // len(SERIES) % 3], "os^Dv"[number % 5]


def spot_of(axes: "Axes", x: float, y: float) -> tuple[float, float]:
    """A point's place in the figure, in points: the figure has 72 of them an inch, as many as pixels."""
    # Asking for the limits settles them, which would else wait until the figure is drawn.
    axes.get_xlim(), axes.get_ylim()
    across, along = axes.transData.transform((x, y))
    return float(across), float(along)


def _bar(axes: "Axes", point: Point) -> Box:
    summary = point.scores.summary
    low, high = (value if math.isfinite(value) else summary.mean for value in (summary.low, summary.high))
    x, bottom = spot_of(axes, point.cost, low)
    return x - 1, bottom, x + 1, spot_of(axes, point.cost, high)[1]


def _steps(axes: "Axes", points: Sequence[Point]) -> list[Box]:
    """The front's line, so that no label is struck through."""
    spots = [spot_of(axes, point.cost, point.scores.summary.mean) for point in points if point.best]
    spots.sort()
    boxes: list[Box] = []
    for (x, y), (after, height) in pairwise(spots):
        boxes += [(x, y - 1, after, y + 1), (after - 1, min(y, height), after + 1, max(y, height))]
    return boxes


@contextmanager
def new_figure(right: float, left: float = _LEFT, width: float = WIDTH) -> "Iterator[tuple[Figure, Axes]]":
    """Axes with margins in points; a figure that is wider than others has a row of the page to itself."""
    require()
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        figure = Figure(figsize=(width / 72, HEIGHT / 72), dpi=72)
        box = (left / width, _BOTTOM / HEIGHT, (width - left - right) / width, (HEIGHT - _BOTTOM - _TOP) / HEIGHT)
        yield figure, figure.add_axes(box)


def as_svg(figure: "Figure", name: str, label: str) -> Markup:
    """The figure as an element of a page: no header, no foreign font, its ids its own."""
    import matplotlib

    matplotlib.rcParams["svg.hashsalt"] = name
    out = io.StringIO()
    nothing = dict.fromkeys(["Date", "Creator", "Format", "Type"])
    figure.savefig(out, format="svg", transparent=True, metadata=nothing)
    body = out.getvalue()
    body = body[body.index(">", body.index("<svg")) + 1 :]
    replaced: list[tuple[str, str | Callable[[re.Match[str]], str]]] = [
        (r"<style.*?</style>|<!--.*?-->|<metadata.*?</metadata>", ""),
        (r"\bid=\"", f'id="{name}-'),
        (r"xlink:href=\"#", f'href="#{name}-'),
        (r"url\(#", f"url(#{name}-"),
        (r"font-family: [^;\"]*;? ?", ""),
        (INK, "currentColor"),
        (r"\s*\n\s*", "\n"),
        # Of coordinates only: what is written in the plot may be smaller than a hundredth.
        (r"<[^>]+>", lambda tag: re.sub(r"(\d+\.\d{2})\d+", r"\1", tag.group())),
    ]
    for pattern, new in replaced:
        body = re.sub(pattern, new, body, flags=re.S)
    width = round(72 * figure.get_figwidth())
    wide = html(' class="wide"') if width > WIDTH else NOTHING
    opening = html('<svg{} viewBox="0 0 {} {}" role="img" aria-label="{}">', wide, width, HEIGHT, label)
    return opening + drawing(body.rstrip())
