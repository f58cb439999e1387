"""Figures over models, as the thesis draws them: lines over their sizes, or bars of each beside each other."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from raison.core.results import Summary
from raison.report.colours import SERIES
from raison.report.labels import spread
from raison.report.markup import Markup
from raison.report.phrases import shorten
from raison.report.plots import FONT, GREY, INK, LABEL, WIDTH, as_svg, look_of, new_figure, spot_of
from raison.runs.models_figure import Axis, Place, told

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LETTER = 5.9
"""Points that a letter of a label takes, on average."""
_BAR, _AXIS = 8.0, 60.0
"""Points that a bar takes at least, and what stands beside them."""
_HATCHES = ("", "////", "....")
_STYLES = {"": "-", "dashed": "--", "dotted": ":"}


@dataclass(frozen=True, slots=True)
class Series:
    """A method's values over the models of a figure; None where it has none.

    `number` among all methods decides its colour. `style` is "", "dashed" or "dotted"; bars are drawn of "" only, and
    the others as a short line across them, for what a bar is to be held against.
    """

    name: str
    number: int
    values: tuple[Summary | None, ...]
    style: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """What is drawn. `name` is unique on the page; `limits` are the ends of the axis of values, where given."""

    name: str
    title: str
    axis: Axis
    models: tuple[Place, ...]
    series: tuple[Series, ...]
    limits: tuple[float, float] | None = None


def model_figure(asked: Figure) -> Markup:
    """Lines over parameters where those of all models are known, bars else."""
    known = all(model.parameters for model in asked.models)
    return _lines(asked) if asked.axis == "parameters" and known else _bars(asked)


def _lines(asked: Figure) -> Markup:
    """Means over sizes on a logarithmic axis, with 95 % intervals as bands."""
    named = [one for one in asked.series if not one.style]
    order = sorted(range(len(asked.models)), key=lambda place: asked.models[place].parameters or 0)
    with new_figure(_margin(named)) as (figure, axes):
        _head(axes, asked)
        axes.set_xlabel("parameters")
        axes.grid(axis="y")
        axes.margins(0.08, 0.08)
        for one in asked.series:
            points = [(float(asked.models[i].parameters or 0), found) for i in order if (found := one.values[i])]
            if points:
                _line(axes, one, points)
        _sizes(axes, [asked.models[place] for place in order])
        _name_ends(axes, named, order, asked.models)
        return as_svg(figure, asked.name, f"{asked.title} over parameters")


def _line(axes: "Axes", one: Series, points: Sequence[tuple[float, Summary]]) -> None:
    colour, style, marker = look_of(one.number, one.name)
    x = [place for place, _ in points]
    if one.style != "dotted":
        low, high = [found.low for _, found in points], [found.high for _, found in points]
        axes.fill_between(x, low, high, color=colour, alpha=0.08 if one.style else 0.13, linewidth=0)
    axes.plot(
        x,
        [found.mean for _, found in points],
        linestyle=_STYLES[one.style] if one.style else style,
        marker=marker if one.style != "dotted" else "",
        markersize=4,
        color=colour,
        alpha=0.7 if one.style == "dotted" else 1.0,
        linewidth=1.1 if one.style == "dotted" else 1.6,
    )


def _sizes(axes: "Axes", models: Sequence[Place]) -> None:
    axes.set_xscale("log")
    # Models of one size, or almost, would write their numbers on each other.
    ticks: list[int] = []
    for size in (model.parameters or 0 for model in models):
        if not ticks or size > 1.12 * ticks[-1]:
            ticks.append(size)
    axes.set_xticks(ticks, [told(size) for size in ticks], minor=False)
    axes.set_xticks([], minor=True)


def _name_ends(axes: "Axes", named: Sequence[Series], order: Sequence[int], models: Sequence[Place]) -> None:
    """Each line's name beside its end, none on another."""
    ends = []
    for one in named:
        there = [(place, one.values[place]) for place in order]
        last = next(((place, found) for place, found in reversed(there) if found is not None), None)
        if last is not None:
            ends.append((one, spot_of(axes, float(models[last[0]].parameters or 0), last[1].mean)))
    name_ends(axes, [(one.name, look_of(one.number, one.name)[0], spot) for one, spot in ends])


def name_ends(axes: "Axes", ends: Sequence[tuple[str, str, tuple[float, float]]]) -> None:
    """Names in their colours at the right, joined to the ends of lines, given in points of the figure."""
    right = axes.bbox.x1 + 8
    for (name, colour, end), height in zip(ends, spread([spot[1] for _, _, spot in ends]), strict=True):
        axes.annotate(
            shorten(name, LABEL),
            end,
            (right, height),
            xycoords="figure points",
            textcoords="figure points",
            va="center",
            fontsize=FONT - 1.5,
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.8,
                "relpos": (0, 0.5),
                "shrinkA": 1,
                "shrinkB": 2,
            },
            annotation_clip=False,
        )


def _bars(asked: Figure) -> Markup:
    """A group of bars for each model, a bar for each method, with 95 % intervals on them."""
    drawn = [one for one in asked.series if not one.style]
    beside = [one for one in asked.series if one.style]
    width = 0.82 / max(1, len(drawn))
    needed = _margin(drawn) + _AXIS + _BAR * len(drawn) * len(asked.models)
    with new_figure(_margin(drawn), width=max(WIDTH, needed)) as (figure, axes):
        _head(axes, asked)
        axes.grid(axis="y")
        axes.set_axisbelow(True)
        axes.margins(0.02, 0.08)
        axes.axhline(0, color=GREY, linewidth=0.8)
        for column, one in enumerate(drawn):
            shift = (column - (len(drawn) - 1) / 2) * width
            places = [(place + shift, found) for place, found in enumerate(one.values) if found]
            _group(axes, one, places, width)
            for other in (other for other in beside if other.number == one.number):
                marks = [(place + shift, found.mean) for place, found in enumerate(other.values) if found]
                x, y = [place for place, _ in marks], [mean for _, mean in marks]
                axes.hlines(y, [p - width / 2 for p in x], [p + width / 2 for p in x], color=INK, linestyle=":")
        room = axes.bbox.width / max(1, len(asked.models))
        short = max(6, int(room / _LETTER) - 1)
        axes.set_xticks(range(len(asked.models)), [shorten(model.name, short) for model in asked.models])
        axes.tick_params(axis="x", length=0)
        _legend(axes, drawn)
        return as_svg(figure, asked.name, f"{asked.title} of each model")


def _group(axes: "Axes", one: Series, places: Sequence[tuple[float, Summary]], width: float) -> None:
    colour = _fill(one)
    x, means = [place for place, _ in places], [found.mean for _, found in places]
    hatch = _HATCHES[one.number // len(SERIES) % len(_HATCHES)]
    axes.bar(x, means, width * 0.92, color=colour, edgecolor=INK if hatch else colour, hatch=hatch, linewidth=0)
    # The page's ink: black on a light page, as the thesis's, and light on a dark one.
    known = [(place, found) for place, found in places if found.low == found.low]
    axes.vlines(
        [place for place, _ in known],
        [found.low for _, found in known],
        [found.high for _, found in known],
        color=INK,
        linewidth=1.1,
    )


def _legend(axes: "Axes", drawn: Sequence[Series]) -> None:
    from matplotlib.patches import Rectangle

    right, top = axes.bbox.x1 + 10, axes.bbox.y1 - 8
    for row, one in enumerate(drawn):
        height = top - 17 * row
        hatch = _HATCHES[one.number // len(SERIES) % len(_HATCHES)]
        patch = Rectangle(
            (right, height - 4),
            9,
            9,
            facecolor=_fill(one),
            edgecolor=INK,
            linewidth=0,
            hatch=hatch,
            transform=None,
            clip_on=False,
        )
        axes.add_artist(patch)
        axes.annotate(
            shorten(one.name, LABEL),
            (right + 14, height),
            xycoords="figure points",
            va="center",
            fontsize=FONT - 1.5,
            annotation_clip=False,
        )


def _fill(one: Series) -> str:
    return look_of(one.number, one.name)[0]


def _margin(named: Sequence[Series]) -> float:
    return 26 + _LETTER * max((len(shorten(one.name, LABEL)) for one in named), default=0)


def _head(axes: "Axes", asked: Figure) -> None:
    axes.set_title(asked.title, loc="left", fontsize=FONT, fontweight="bold")
    if asked.limits is not None:
        axes.set_ylim(*asked.limits)
