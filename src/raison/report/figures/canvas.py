"""The basis of every plot: its settings, axes with margins, and the SVG inside a page.

It follows the page's light or dark background and its font. matplotlib (the extra `report`) is imported when a plot is
drawn; the caller's settings and figures are unchanged.
"""

import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple

from raison.core.errors import DataError
from raison.report.figures.data import Curve, Series
from raison.report.figures.labels import PlacedLabel, spread
from raison.report.style.colours import SERIES
from raison.report.style.markup import Markup, drawing, rendered
from raison.report.style.phrases import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.typing import RcKeyType

INK = "#010203"
"""Placeholder for the page's text colour until the SVG is written."""
GREY = "#808080"
WIDTH, HEIGHT = 480, 330
FONT = 11
LABEL = 30
"""Maximum number of letters shown of a label."""
LEFT, RIGHT, BOTTOM, TOP = 58, 12, 46, 30
LETTER = 5.9
"""Average width of a letter of a label, in points."""
_SETTINGS: "dict[RcKeyType, object]" = {
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


def require() -> None:
    """Raises DataError if matplotlib is missing."""
    if find_spec("matplotlib") is None:
        raise DataError("plots need matplotlib: pip install 'raison[report]', or turn plots off with --no-plots.")


@dataclass(frozen=True, slots=True)
class Look:
    """The look of a curve or a bar. Random scores, the baseline, are grey and dotted everywhere."""

    colour: str
    line: str
    marker: str

    @classmethod
    def of(cls, one: Curve | Series) -> "Look":
        """The look of a curve or a bar, by its number among all methods."""
        if one.name.startswith("random"):
            return cls(GREY, ":", "x")
        number = one.number
        line = ("-", "--", "-.")[number // len(SERIES) % 3]
        return cls(SERIES[number % len(SERIES)], line, "os^Dv"[number % 5])


class AxesPosition(NamedTuple):
    """A place in a figure, in points from its lower left corner."""

    x: float
    y: float


def spot_of(axes: "Axes", x: float, y: float) -> AxesPosition:
    """A point's place in the figure, in points: the figure has 72 of them an inch, as many as pixels."""
    # Reading the limits fixes them, which would otherwise happen when the figure is drawn.
    axes.get_xlim(), axes.get_ylim()
    across, along = axes.transData.transform((x, y))
    return AxesPosition(float(across), float(along))


def margin(names: Sequence[str]) -> float:
    """The width at the right for the names of lines or bars."""
    return 26 + LETTER * max((len(shorten(name, LABEL)) for name in names), default=0)


def name_ends(axes: "Axes", curves: Sequence[Curve]) -> None:
    """The curves' names at the right, joined to their ends in their colours."""
    ends = [spot_of(axes, curve.spots[-1].x, curve.spots[-1].mean) for curve in curves]
    for curve, end, height in zip(curves, ends, spread([along for _, along in ends]), strict=True):
        put(axes, curve.name, end, PlacedLabel(axes.bbox.x1 + 8, height, "left", True), Look.of(curve).colour)


def put(axes: "Axes", text: str, position: AxesPosition, label: PlacedLabel, colour: str) -> None:
    """A label of a point, both in points of the figure, with a line to it from afar."""
    beginning = ({"left": 0.0, "right": 1.0, "center": 0.5}[label.anchor], 0.5)
    line = {"arrowstyle": "-", "color": colour, "linewidth": 0.7, "shrinkA": 1, "shrinkB": 2, "relpos": beginning}
    axes.annotate(
        shorten(text, LABEL),
        position,
        (label.x, label.y),
        xycoords="figure points",
        textcoords="figure points",
        ha=label.anchor,
        va="center",
        fontsize=FONT - 1.5,
        arrowprops=line if label.far else None,
        annotation_clip=False,
    )


@contextmanager
def new_figure(right: float, left: float = LEFT, width: float = WIDTH) -> "Iterator[tuple[Figure, Axes]]":
    """Axes with margins in points; a figure that is wider than others gets a row of the page to itself."""
    require()
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_SETTINGS)
        figure = Figure(figsize=(width / 72, HEIGHT / 72), dpi=72)
        box = (left / width, BOTTOM / HEIGHT, (width - left - right) / width, (HEIGHT - BOTTOM - TOP) / HEIGHT)
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
        # Only of coordinates: numbers in the plot's text may be smaller than a hundredth.
        (r"<[^>]+>", lambda tag: re.sub(r"(\d+\.\d{2})\d+", r"\1", tag.group())),
    ]
    for pattern, new in replaced:
        body = re.sub(pattern, new, body, flags=re.S)
    width = round(72 * figure.get_figwidth())
    values = {"width": width, "height": HEIGHT, "wide": width > WIDTH, "label": label, "body": drawing(body.rstrip())}
    return rendered("figure.svg", values)
