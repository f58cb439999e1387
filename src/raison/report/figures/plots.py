"""Draws what raison.report.figures.data describes."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from raison.report.figures.bars import bars
from raison.report.figures.canvas import (
    BOTTOM,
    FONT,
    GREY,
    HEIGHT,
    INK,
    LABEL,
    LEFT,
    LETTER,
    RIGHT,
    TOP,
    WIDTH,
    Look,
    as_svg,
    margin,
    name_ends,
    new_figure,
    put,
    spot_of,
)
from raison.report.figures.data import Curve, Figure, Front, Lines, OverModels, Spread, spot
from raison.report.figures.labels import LabelBox, place, shorten_apart
from raison.report.style.colours import SERIES
from raison.report.style.markup import Markup
from raison.report.style.phrases import shorten
from raison.runs.models_figure import parameter_count
from raison.runs.statistics import Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STYLES = {"dashed": "--", "dotted": ":"}


def drawn(figure: Figure) -> Markup:
    """The figure as an element of a page. Raises DataError where matplotlib is missing."""
    if isinstance(figure, Front):
        return _front(figure)
    if isinstance(figure, Spread):
        return _spread(figure)
    if isinstance(figure, Lines):
        return _lines(figure)
    return _lines(_over_sizes(figure)) if figure.over_sizes else bars(figure)


def _front(plot: Front) -> Markup:
    """A line is drawn through the rows that no other one beats in both."""
    shown = [p for p in plot.points if math.isfinite(p.cost) and math.isfinite(p.scores.summary.mean)]
    title = f"{plot.metric} {'↑' if plot.higher else '↓'}"
    with new_figure(RIGHT) as (figure, axes):
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
        return as_svg(figure, plot.name, f"{title} against passes per text")


def _spread(plot: Spread) -> Markup:
    """Each row's median as a dot, from the first to the third quartile, 5th to 95th percentile."""
    longest = max(len(shorten(label, LABEL)) for label, _ in plot.rows)
    with new_figure(RIGHT, left=16 + LETTER * longest) as (figure, axes):
        axes.set_title(plot.title, loc="left", fontsize=FONT, fontweight="bold")
        places = range(len(plot.rows), 0, -1)
        for height, (_, values) in zip(places, plot.rows, strict=True):
            low, first, middle, third, high = np.percentile(values, [5, 25, 50, 75, 95])
            axes.hlines(height, low, high, color=SERIES[0], linewidth=1)
            axes.hlines(height, first, third, color=SERIES[0], linewidth=7, alpha=0.5)
            axes.plot([middle], [height], "o", markersize=6, color=INK)
        axes.set_yticks(list(places), [shorten(label, LABEL) for label, _ in plot.rows])
        axes.margins(0.04, 0.12)
        axes.grid(axis="x")
        return as_svg(figure, plot.name, plot.title)


def _over_sizes(plot: OverModels) -> Lines:
    """Means over sizes on a logarithmic axis, with 95 % intervals as bands."""
    order = sorted(range(len(plot.models)), key=lambda at: plot.models[at].parameters or 0)
    sizes = [plot.models[at].parameters or 0 for at in order]
    curves = [
        Curve(
            one.name,
            one.number,
            tuple(spot(size, summary) for at, size in zip(order, sizes, strict=True) if (summary := one.values[at])),
            one.style,
        )
        for one in plot.series
    ]
    ticks: list[int] = []
    for size in sizes:
        # The labels of models of almost equal size would overlap.
        if not ticks or size > 1.12 * ticks[-1]:
            ticks.append(size)
    return Lines(
        plot.name,
        plot.title,
        f"{plot.title} over parameters",
        tuple(curve for curve in curves if curve.spots),
        "parameters",
        ticks={size: parameter_count(size) for size in ticks},
        log_x=True,
        limits=plot.limits,
    )


def _lines(plot: Lines) -> Markup:
    named = [curve for curve in plot.curves if not curve.style]
    with new_figure(margin([curve.name for curve in named])) as (figure, axes):
        axes.set_title(plot.title, loc="left", fontsize=FONT, fontweight="bold")
        axes.set_xlabel(plot.across)
        axes.set_ylabel(plot.along)
        axes.grid(axis="y")
        axes.margins(0.06, 0.08)
        if plot.zero:
            axes.axhline(0, color=GREY, linewidth=0.8)
        if plot.limits is not None:
            axes.set_ylim(*plot.limits)
        for curve in plot.curves:
            _curve(axes, curve)
        _scales(axes, plot)
        name_ends(axes, named)
        return as_svg(figure, plot.name, plot.label)


def _curve(axes: "Axes", one: Curve) -> None:
    look = Look.of(one)
    x = [each.x for each in one.spots]
    dotted = one.style == "dotted"
    if not dotted:
        low, high = [each.low for each in one.spots], [each.high for each in one.spots]
        axes.fill_between(x, low, high, color=look.colour, alpha=0.08 if one.style else 0.13, linewidth=0)
    axes.plot(
        x,
        [each.mean for each in one.spots],
        linestyle=_STYLES.get(one.style, look.line),
        marker="" if dotted else look.marker,
        markersize=4,
        color=look.colour,
        alpha=0.7 if dotted else 1.0,
        linewidth=1.1 if dotted else 1.6,
    )


def _scales(axes: "Axes", plot: Lines) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    if plot.log_x:
        axes.set_xscale("log")
    if plot.log_y:
        plain = FuncFormatter(lambda value, _: f"{value:,.10g}")
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(plain)
        axes.yaxis.set_minor_formatter(plain)
    if plot.ticks is None:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    else:
        axes.set_xticks(list(plot.ticks), list(plot.ticks.values()), minor=False)
        axes.set_xticks([], minor=True)


def _point(axes: "Axes", point: Point) -> None:
    summary = point.scores.summary
    colour = SERIES[0] if point.best else GREY
    if math.isfinite(summary.low) and math.isfinite(summary.high):
        axes.vlines(point.cost, summary.low, summary.high, color=colour, alpha=0.6, linewidth=1)
    # Hollow: the metric evaluates maps that it selected itself.
    fill = "none" if point.row.selected_by else colour
    axes.plot([point.cost], [summary.mean], "o", markersize=6, markeredgecolor=colour, markerfacecolor=fill)


def _cost_axis(axes: "Axes", costs: Sequence[float]) -> None:
    """Logarithmic if costs differ widely; a cost of zero, as for random scores, still has a place."""
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
    names = [point.row.method.removesuffix(f" by {point.row.selected_by}") for point in points]
    marks = ["†" if point.row.selected_by else "" for point in points]
    texts = [f"{name}{mark}" for name, mark in zip(shorten_apart(names, LABEL - 1), marks, strict=True)]
    bounds = (LEFT + 2.0, BOTTOM + 2.0, WIDTH - 2.0, HEIGHT - TOP + 8.0)
    for position, text, label in zip(spots, texts, place(spots, texts, bounds, bars), strict=True):
        put(axes, text, position, label, GREY)


def _bar(axes: "Axes", point: Point) -> LabelBox:
    summary = point.scores.summary
    low, high = (value if math.isfinite(value) else summary.mean for value in (summary.low, summary.high))
    x, bottom = spot_of(axes, point.cost, low)
    return x - 1, bottom, x + 1, spot_of(axes, point.cost, high)[1]


def _steps(axes: "Axes", points: Sequence[Point]) -> list[LabelBox]:
    """Boxes around the front's line, which labels must not cover."""
    spots = [spot_of(axes, point.cost, point.scores.summary.mean) for point in points if point.best]
    spots.sort()
    boxes: list[LabelBox] = []
    for (x, y), (after, height) in pairwise(spots):
        boxes += [(x, y - 1, after, y + 1), (after - 1, min(y, height), after + 1, max(y, height))]
    return boxes
