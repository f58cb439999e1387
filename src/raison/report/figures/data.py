"""The data of figures, before anything is drawn: raison.report.figures.plots draws each of these."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from raison.core.results.scores import Summary
from raison.runs.models_figure import Axis, FiguredModel
from raison.runs.statistics import Point


@dataclass(frozen=True, slots=True)
class Front:
    """A metric against passes per text, a point for each row; `name` is unique on the page, here as in all figures."""

    name: str
    metric: str
    higher: bool
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Spread:
    """Distributions of single texts' values: one for each named row."""

    name: str
    title: str
    rows: tuple[tuple[str, Sequence[float]], ...]


@dataclass(frozen=True, slots=True)
class Spot:
    """A point of a curve with the ends of its band."""

    x: float
    low: float
    mean: float
    high: float


@dataclass(frozen=True, slots=True)
class Curve:
    """A line through spots, by rising x. `number` among all decides its colour; `style` is "", "dashed" or "dotted".

    Only curves of style "" are named at their ends; dotted ones have no band.
    """

    name: str
    number: int
    spots: tuple[Spot, ...]
    style: str = ""


@dataclass(frozen=True, slots=True)
class Lines:
    """Curves over one axis. `label` describes it for screen readers; `ticks` are places with names."""

    name: str
    title: str
    label: str
    curves: tuple[Curve, ...]
    across: str = ""
    along: str = ""
    ticks: Mapping[float, str] | None = None
    log_x: bool = False
    log_y: bool = False
    limits: tuple[float, float] | None = None
    zero: bool = False


@dataclass(frozen=True, slots=True)
class Series:
    """A method's values over the models of a figure; None for a missing value.

    `number` among all methods decides its colour. `style` is "", "dashed" or "dotted"; only those of style "" are drawn
    as bars, and the others as short lines across them, as a reference for the bar.
    """

    name: str
    number: int
    values: tuple[Summary | None, ...]
    style: str = ""


@dataclass(frozen=True, slots=True)
class OverModels:
    """Lines over the models' sizes, or bars side by side; `limits` are the ends of the axis, if given."""

    name: str
    title: str
    axis: Axis
    models: tuple[FiguredModel, ...]
    series: tuple[Series, ...]
    limits: tuple[float, float] | None = None

    @property
    def over_sizes(self) -> bool:
        """Whether lines are drawn: sizes are requested, and all are known."""
        return self.axis == "parameters" and all(model.parameters for model in self.models)


Figure = Front | Spread | Lines | OverModels


def spot(x: float, summary: Summary) -> Spot:
    """A summary as a point; one text has no interval."""
    low = summary.low if summary.low == summary.low else summary.mean
    high = summary.high if summary.high == summary.high else summary.mean
    return Spot(x, low, summary.mean, high)
