"""The plots of a study of trainings: losses over epochs (IvRA, figure 6), seconds over texts (figure 9)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from raison.report.colours import SERIES
from raison.report.labels import spread
from raison.report.markup import Markup
from raison.report.phrases import shorten
from raison.report.plots import FONT, LABEL, as_svg, look_of, new_figure, spot_of
from raison.studies.kinds.trainings.groups import ways
from raison.studies.kinds.trainings.results import TrainingRecord, Trainings
from raison.studies.kinds.trainings.tables import Place, places, rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Spot = tuple[float, float, float, float]
MOST = 2 * len(SERIES)
"""Lines of one plot; more would lie on each other."""


@dataclass(frozen=True, slots=True)
class Curve:
    """A line through points (x, lowest, mean, highest), by rising x; its `number` among all decides its looks."""

    name: str
    number: int
    points: tuple[Spot, ...]


@dataclass(frozen=True, slots=True)
class About:
    """What a plot says of itself; `log` where both of its axes are logarithmic."""

    title: str
    across: str
    log: bool = False


def loss_plots(study: Trainings) -> Iterator[Markup]:
    """For each task and loss: its mean in every epoch, a line for each training that has it."""
    for number, place in enumerate(places(study)):
        records = {row["name"]: _of(study, row["name"], place) for row in rows(study, "training")}
        losses = dict.fromkeys(loss for found in records.values() for one in found for loss in _losses(one))
        for count, loss in enumerate(losses):
            curves = [
                Curve(name, row_number, _epochs([_losses(one).get(loss, ()) for one in found]))
                for row_number, (name, found) in enumerate(records.items())
            ]
            about = About(f"{place.title}: loss {loss} ↓", "epoch")
            yield from _plots(f"l{number}n{count}", about, [curve for curve in curves if curve.points])


def seconds_plots(study: Trainings) -> Iterator[Markup]:
    """For each task: seconds of trainings that differ in the number of texts; none where all learn from as many."""
    for number, place in enumerate(places(study)):
        curves = []
        for name, group in ways(study, "texts").items():
            found = [one for row in group for one in _of(study, row["name"], place)]
            if len({one.texts for one in found}) > 1:
                curves.append(Curve(name or "training", len(curves), _durations(found)))
        about = About(f"{place.title}: seconds of a training ↓", "texts learned from", log=True)
        yield from _plots(f"t{number}", about, curves)


def _of(study: Trainings, row: str, place: Place) -> list[TrainingRecord]:
    """A row's records of all seeds."""
    keys = [(place.task, place.test, row, seed) for seed in study.header["seeds"]]
    return [study.records[key] for key in keys if key in study.records]


def _losses(record: TrainingRecord) -> Mapping[str, Sequence[float | None]]:
    found: Mapping[str, Sequence[float | None]] = record.history.get("losses", {})
    return found


def _epochs(seeds: Sequence[Sequence[float | None]]) -> tuple[Spot, ...]:
    count = max(map(len, seeds), default=0)
    columns = [[values[epoch] for values in seeds if epoch < len(values)] for epoch in range(count)]
    return tuple(_point(epoch, column) for epoch, column in enumerate(columns, 1) if _known(column))


def _durations(records: Sequence[TrainingRecord]) -> tuple[Spot, ...]:
    counts = sorted({record.texts for record in records})
    return tuple(_point(count, [one.training_seconds for one in records if one.texts == count]) for count in counts)


def _point(x: float, values: Sequence[float | None]) -> Spot:
    known = _known(values)
    return x, min(known), sum(known) / len(known), max(known)


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None and math.isfinite(value)]


def _plots(name: str, about: About, curves: Sequence[Curve]) -> Iterator[Markup]:
    for start in range(0, len(curves), MOST):
        yield _plot(f"{name}p{start}", about, curves[start : start + MOST])


def _plot(name: str, about: About, curves: Sequence[Curve]) -> Markup:
    from matplotlib.ticker import MaxNLocator

    with new_figure(20 + 5.9 * max(len(shorten(curve.name, LABEL)) for curve in curves)) as (figure, axes):
        axes.set_title(about.title, loc="left", fontsize=FONT, fontweight="bold")
        axes.set_xlabel(about.across)
        axes.margins(0.06, 0.08)
        axes.grid(axis="y")
        for curve in curves:
            colour, style, marker = look_of(curve.number, curve.name)
            x, low, mean, high = zip(*curve.points, strict=True)
            axes.fill_between(x, low, high, color=colour, alpha=0.13, linewidth=0)
            axes.plot(x, mean, linestyle=style, marker=marker, markersize=4, color=colour)
        if about.log:
            _logarithmic(axes, sorted({point[0] for curve in curves for point in curve.points}))
        else:
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        _name_ends(axes, curves)
        return as_svg(figure, name, f"{about.title} over {about.across}")


def _logarithmic(axes: "Axes", counts: Sequence[float]) -> None:
    from matplotlib.ticker import FuncFormatter

    plain = FuncFormatter(lambda value, _: f"{value:,.10g}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(counts, minor=False)
    axes.set_xticks([], minor=True)
    for formatted in (axes.xaxis.set_major_formatter, axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        formatted(plain)


def _name_ends(axes: "Axes", curves: Sequence[Curve]) -> None:
    """Each curve's name beside its end, none on another."""
    ends = [spot_of(axes, curve.points[-1][0], curve.points[-1][2]) for curve in curves]
    right = axes.bbox.x1 + 8
    for curve, end, height in zip(curves, ends, spread([y for _, y in ends]), strict=True):
        line = {"arrowstyle": "-", "color": look_of(curve.number, curve.name)[0], "linewidth": 0.8, "relpos": (0, 0.5)}
        axes.annotate(
            shorten(curve.name, LABEL),
            end,
            (right, height),
            xycoords="figure points",
            textcoords="figure points",
            va="center",
            fontsize=FONT - 1.5,
            arrowprops={**line, "shrinkA": 1, "shrinkB": 2},
            annotation_clip=False,
        )
