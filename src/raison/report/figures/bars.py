"""Bars of each model side by side, as in the thesis."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from raison.core.results.scores import Summary
from raison.report.figures.canvas import FONT, GREY, INK, LABEL, LETTER, WIDTH, Look, as_svg, margin, new_figure
from raison.report.figures.data import OverModels, Series
from raison.report.style.colours import SERIES
from raison.report.style.markup import Markup
from raison.report.style.phrases import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BAR, _AXIS = 8.0, 60.0
"""Minimum width of a bar in points, and the space for the rest."""
_HATCHES = ("", "////", "....")


def bars(plot: OverModels) -> Markup:
    """A group of bars for each model, a bar for each method, with 95 % intervals on them."""
    drawn = [one for one in plot.series if not one.style]
    beside = [one for one in plot.series if one.style]
    width = 0.82 / max(1, len(drawn))
    needed = margin([one.name for one in drawn]) + _AXIS + _BAR * len(drawn) * len(plot.models)
    with new_figure(margin([one.name for one in drawn]), width=max(WIDTH, needed)) as (figure, axes):
        axes.set_title(plot.title, loc="left", fontsize=FONT, fontweight="bold")
        if plot.limits is not None:
            axes.set_ylim(*plot.limits)
        axes.grid(axis="y")
        axes.set_axisbelow(True)
        axes.margins(0.02, 0.08)
        axes.axhline(0, color=GREY, linewidth=0.8)
        for column, one in enumerate(drawn):
            shift = (column - (len(drawn) - 1) / 2) * width
            places = [(place + shift, summary) for place, summary in enumerate(one.values) if summary]
            _group(axes, one, places, width)
            for other in (other for other in beside if other.number == one.number):
                marks = [(place + shift, summary.mean) for place, summary in enumerate(other.values) if summary]
                x, y = [place for place, _ in marks], [mean for _, mean in marks]
                axes.hlines(y, [p - width / 2 for p in x], [p + width / 2 for p in x], color=INK, linestyle=":")
        room = axes.bbox.width / max(1, len(plot.models))
        short = max(6, int(room / LETTER) - 1)
        axes.set_xticks(range(len(plot.models)), [shorten(model.name, short) for model in plot.models])
        axes.tick_params(axis="x", length=0)
        # Without a value there is no bar, and nothing to name.
        if axes.get_legend_handles_labels()[0]:
            axes.legend(
                loc="upper left", bbox_to_anchor=(1, 1.04), frameon=False, fontsize=FONT - 1.5, handlelength=0.8
            )
        return as_svg(figure, plot.name, f"{plot.title} of each model")


def _group(axes: "Axes", one: Series, places: Sequence[tuple[float, Summary]], width: float) -> None:
    colour = Look.of(one).colour
    x, means = [place for place, _ in places], [summary.mean for _, summary in places]
    hatch = _HATCHES[one.number // len(SERIES) % len(_HATCHES)]
    edge, name = INK if hatch else colour, shorten(one.name, LABEL)
    axes.bar(x, means, width * 0.92, label=name, color=colour, edgecolor=edge, hatch=hatch, linewidth=0)
    # The page's ink: black on a light page, as the thesis's, and light on a dark one.
    known = [(place, summary) for place, summary in places if summary.low == summary.low]
    lows, highs = [summary.low for _, summary in known], [summary.high for _, summary in known]
    axes.vlines([place for place, _ in known], lows, highs, color=INK, linewidth=1.1)
