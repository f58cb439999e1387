"""The plots of a study of trust: similarity over randomised blocks, what attacks do over models."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from raison.core.results import Summary
from raison.report.markup import Markup
from raison.report.model_plots import Figure, Series, model_figure, name_ends
from raison.report.phrases import shorten
from raison.report.plots import FONT, GREY, LABEL, as_svg, look_of, new_figure, spot_of
from raison.runs.models_figure import Axis, Place, axis_of
from raison.trust.records import Objective, Order
from raison.trust.results import TrustRun, TrustRuns, Variant
from raison.trust.tables import UNCHANGED, Effect, curve, effects, summary

if TYPE_CHECKING:
    from matplotlib.axes import Axes

EFFECT_NAMES: dict[Effect, str] = {
    "rank_change": "rank change",
    "sum_change": "top-k sum change",
    "probability_change": "probability change",
    "absolute_probability_change": "size of the probability change",
}
DRAWN: tuple[Effect, ...] = ("rank_change", "sum_change", "probability_change")
STYLES: dict[Objective, str] = {"unconstrained": "", "constrained": "dashed"}


@dataclass(frozen=True, slots=True)
class _Curve:
    method: str
    number: int
    points: tuple[tuple[int, Summary], ...]


def numbers(study: TrustRuns) -> dict[str, int]:
    """Each method's number, which decides its colour in every plot of the page."""
    return {method: number for number, method in enumerate(study.header["methods"])}


def randomisation_plots(study: TrustRuns, order: Order) -> Iterator[Markup]:
    """A panel for each run: Spearman's correlation with the explanation of the model as it was, by blocks."""
    looks = numbers(study)
    for number, run in enumerate(study.runs.values()):
        curves = []
        for method in run.randomised:
            found = curve(run, method, order, "spearman")
            points = [(blocks, one) for blocks, one in enumerate(found, start=1) if one.count]
            if points:
                curves.append(_Curve(method, looks[method], tuple(points)))
        if order in run.orders and curves:
            yield _panel(f"{order[0]}{number}", f"{title_of(study, run)}, {order}", run.blocks, curves)


def title_of(study: TrustRuns, run: TrustRun) -> str:
    """The model, and the data where there are several."""
    model = str(run.header["model"])
    return f"{model} on {run.header['data']}" if len(study.data) > 1 else model


def attack_plots(study: TrustRuns) -> Iterator[tuple[str, list[Markup]]]:
    """For each data set: its name, and a figure (of bars: one for each objective) for each of `DRAWN`."""
    axis = axis_of(study.file) or "model"
    for place, (data, runs) in enumerate(study.data.items()):
        if not any(run.attacks for run in runs):
            continue
        models = tuple(Place(run.header["model"], study.model(run).get("parameters")) for run in runs)
        drawn = []
        for number, measure in enumerate(DRAWN):
            drawn += list(_over_models(f"k{place}n{number}", (study, runs), measure, (axis, models)))
        yield data, drawn


def substitution_plots(study: TrustRuns) -> Iterator[tuple[str, list[Markup]]]:
    """The same for substituted words: rank change only, of all methods."""
    axis = axis_of(study.file) or "model"
    variant = Variant("substitution", "constrained")
    for place, (data, runs) in enumerate(study.data.items()):
        if not any(variant in run.variants and run.attacks for run in runs):
            continue
        models = tuple(Place(run.header["model"], study.model(run).get("parameters")) for run in runs)
        series = _series((study, runs), variant, "rank_change", "")
        yield (
            data,
            [
                model_figure(
                    Figure(f"w{place}", "rank change, words substituted", axis, models, tuple(series), (0.0, 1.04))
                )
            ],
        )


def _over_models(
    name: str, what: tuple[TrustRuns, Sequence[TrustRun]], measure: Effect, over: tuple[Axis, tuple[Place, ...]]
) -> Iterator[Markup]:
    axis, models = over
    runs = what[1]
    drawn = [one for one in STYLES if any(Variant("embedding", one) in run.variants for run in runs)]
    found = {one: _series(what, Variant("embedding", one), measure, "") for one in drawn}
    controls = {one: _series(what, Variant("noise", one), measure, "dotted") for one in drawn}
    # The objectives are to be compared: one scale for both.
    limits = _limits([one for some in (*found.values(), *controls.values()) for one in some], measure)
    if axis == "parameters" and all(model.parameters for model in models):
        # One figure: lines are told apart by their style. The control is that of the objective that is drawn solid.
        lines = [replace(one, style=STYLES[key] if key != drawn[0] else "") for key in drawn for one in found[key]]
        series = (*lines, *(controls[drawn[0]] if drawn else ()))
        yield model_figure(Figure(name, EFFECT_NAMES[measure], axis, models, series, limits))
        return
    for key in drawn:
        title = f"{EFFECT_NAMES[measure]}, {key}"
        series = (*found[key], *controls[key])
        yield model_figure(Figure(f"{name}{key[0]}", title, axis, models, series, limits))


def _limits(series: Sequence[Series], measure: Effect) -> tuple[float, float] | None:
    if measure == "rank_change":
        return (0.0, 1.04)
    ends = [end for one in series for found in one.values if found for end in (found.low, found.mean, found.high)]
    known = [end for end in ends if end == end]
    low, high = min(known, default=0.0), max(known, default=0.0)
    room = 0.06 * (max(high, 0) - min(low, 0))
    return (min(low, 0) - (room if low < 0 else 0), max(high, 0) + room) if room else None


def _series(what: tuple[TrustRuns, Sequence[TrustRun]], variant: Variant, measure: Effect, style: str) -> list[Series]:
    study, runs = what
    found = []
    for method, number in numbers(study).items():
        values = tuple(_summary(run, method, variant, measure) for run in runs)
        if any(values):
            found.append(Series(method, number, values, style))
    return found


def _summary(run: TrustRun, method: str, variant: Variant, measure: Effect) -> Summary | None:
    found = summary(effects(run, method, variant, measure).values())
    return found if found.count else None


def _panel(name: str, title: str, blocks: int, curves: Sequence[_Curve]) -> Markup:
    with new_figure(26 + 5.9 * max(len(shorten(one.method, LABEL)) for one in curves)) as (figure, axes):
        axes.set_title(title, loc="left", fontsize=FONT, fontweight="bold")
        axes.set_ylabel("Spearman")
        axes.grid(axis="y")
        axes.axhline(0, color=GREY, linewidth=0.8)
        lowest = min(one.low if one.low == one.low else one.mean for c in curves for _, one in c.points)
        # The same height in all panels, so that they can be compared; more room only where it is needed.
        axes.set_ylim(min(-0.45, lowest - 0.05), 1.06)
        axes.margins(x=0.03)
        for one in curves:
            _curve(axes, one)
        _blocks(axes, blocks, title.endswith("cascading"))
        ends = [(one, spot_of(axes, one.points[-1][0], one.points[-1][1].mean)) for one in curves]
        name_ends(axes, [(one.method, look_of(one.number, one.method)[0], spot) for one, spot in ends])
        return as_svg(figure, name, f"{title}: rank correlation over randomised blocks")


def _curve(axes: "Axes", one: _Curve) -> None:
    colour, style, marker = look_of(one.number, one.method)
    x = [0, *(blocks for blocks, _ in one.points)]
    mean = [UNCHANGED, *(found.mean for _, found in one.points)]
    # One text has no interval.
    low = [UNCHANGED, *(found.low if found.low == found.low else found.mean for _, found in one.points)]
    high = [UNCHANGED, *(found.high if found.high == found.high else found.mean for _, found in one.points)]
    axes.fill_between(x, low, high, color=colour, alpha=0.13, linewidth=0)
    axes.plot(x, mean, linestyle=style, marker=marker, markersize=4, color=colour)


def _blocks(axes: "Axes", blocks: int, cascading: bool) -> None:
    """From the model as it was, on the left, to all blocks or the first one."""
    step = max(1, -(-blocks // 8))
    shown = [place for place in range(1, blocks) if (place - 1) % step == 0 and blocks - place >= step / 2]
    last = "all" if cascading else ("last" if blocks == 1 else "first")
    names = {0: "full", **{place: str(place) for place in shown}, blocks: last}
    if not cascading and blocks > 1:
        names[1] = "last"
    axes.set_xticks(list(names), list(names.values()))
    axes.set_xlabel("blocks randomised, from the last one back" if cascading else "the one block randomised")
