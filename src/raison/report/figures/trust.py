"""Figures of trust: similarity over randomised blocks, effects of attacks over models."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from raison.core.results.scores import Summary
from raison.report.figures.data import Curve, Lines, OverModels, Series, Spot, spot
from raison.runs.headers import ModelHead
from raison.runs.models_figure import Axis, FiguredModel
from raison.trust.records import AttackObjective, Order
from raison.trust.results import AttackVariant, TrustRun
from raison.trust.tables import UNCHANGED, Effect, curve, effects, summary

EFFECT_NAMES: dict[Effect, str] = {
    "rank_change": "rank change",
    "sum_change": "top-k sum change",
    "probability_change": "probability change",
    "absolute_probability_change": "size of the probability change",
}
DRAWN: tuple[Effect, ...] = ("rank_change", "sum_change", "probability_change")
STYLES: dict[AttackObjective, str] = {"unconstrained": "", "constrained": "dashed"}
SUBSTITUTED = AttackVariant("substitution", "constrained")


@dataclass(frozen=True, slots=True)
class Tried:
    """Tested models: their runs, facts about each by its key, and the x axis of figures.

    A method's number in `methods` decides its colour in every figure. `scores` says that the model predicts a score
    without a probability.
    """

    methods: tuple[str, ...]
    runs: tuple[TrustRun, ...]
    models: Mapping[str, ModelHead]
    axis: Axis = "model"
    scores: bool = False

    def named(self, measure: Effect) -> str:
        """The name of an attack's effect."""
        return EFFECT_NAMES[measure].replace("probability", "score") if self.scores else EFFECT_NAMES[measure]

    @property
    def data(self) -> dict[str, list[TrustRun]]:
        """The runs on each data set, by the study's key of it."""
        runs: dict[str, list[TrustRun]] = {}
        for run in self.runs:
            runs.setdefault(run.header.data, []).append(run)
        return runs


def randomisation_figures(tried: Tried, order: Order) -> Iterator[Lines]:
    """A panel for each run: Spearman's correlation with the explanation of the model as it was, by blocks."""
    for number, run in enumerate(tried.runs):
        curves = []
        for method in run.randomised:
            similarities = curve(run, method, order, "spearman")
            spots = tuple(spot(blocks, one) for blocks, one in enumerate(similarities, start=1) if one.count)
            if spots:
                whole = (Spot(0, UNCHANGED, UNCHANGED, UNCHANGED), *spots)
                curves.append(Curve(method, tried.methods.index(method), whole))
        if order in run.orders and curves:
            yield _panel(f"{order[0]}{number}", _title(tried, run), run.blocks, order, tuple(curves))


def _title(tried: Tried, run: TrustRun) -> str:
    """The model, and the data if there are several."""
    model = run.header.model
    return f"{model} on {run.header.data}" if len(tried.data) > 1 else model


def _panel(name: str, title: str, blocks: int, order: Order, curves: tuple[Curve, ...]) -> Lines:
    title = f"{title}, {order}"
    lowest = min(one.low for curve in curves for one in curve.spots)
    return Lines(
        name,
        title,
        f"{title}: rank correlation over randomised blocks",
        curves,
        "blocks randomised, from the last one back" if order == "cascading" else "the one block randomised",
        "Spearman",
        _ticks(blocks, order),
        # The same height in all panels, so that they can be compared; more room only if needed.
        limits=(min(-0.45, lowest - 0.05), 1.06),
        zero=True,
    )


def _ticks(blocks: int, order: Order) -> dict[float, str]:
    """From the model as it was, on the left, to all blocks or the first one."""
    step = max(1, -(-blocks // 8))
    shown = [place for place in range(1, blocks) if (place - 1) % step == 0 and blocks - place >= step / 2]
    last = "all" if order == "cascading" else ("last" if blocks == 1 else "first")
    names: dict[float, str] = {0: "full", **{place: str(place) for place in shown}, blocks: last}
    if order != "cascading" and blocks > 1:
        names[1] = "last"
    return names


def attack_figures(tried: Tried) -> Iterator[tuple[str, list[OverModels]]]:
    """For each data set: its name, and a figure (of bars: one for each objective) for each of `DRAWN`."""
    for place, (data, runs) in enumerate(tried.data.items()):
        if any(run.attacks for run in runs):
            shown = [_over_models(f"k{place}n{number}", tried, runs, measure) for number, measure in enumerate(DRAWN)]
            yield data, [figure for figures in shown for figure in figures]


def substitution_figures(tried: Tried) -> Iterator[tuple[str, list[OverModels]]]:
    """The same for substituted words: rank change only, of all methods."""
    for place, (data, runs) in enumerate(tried.data.items()):
        if any(SUBSTITUTED in run.variants and run.attacks for run in runs):
            series = tuple(_series(tried, runs, SUBSTITUTED, "rank_change"))
            title, models = "rank change, words substituted", _models(tried, runs)
            yield data, [OverModels(f"w{place}", title, tried.axis, models, series, (0.0, 1.04))]


def _models(tried: Tried, runs: Sequence[TrustRun]) -> tuple[FiguredModel, ...]:
    keys = [run.header.model for run in runs]
    return tuple(FiguredModel(key, tried.models[key].parameters) for key in keys)


def _over_models(name: str, tried: Tried, runs: Sequence[TrustRun], measure: Effect) -> Iterator[OverModels]:
    drawn = [one for one in STYLES if any(AttackVariant("embedding", one) in run.variants for run in runs)]
    attacked = {one: _series(tried, runs, AttackVariant("embedding", one), measure) for one in drawn}
    noise = {one: _series(tried, runs, AttackVariant("noise", one), measure) for one in drawn}
    controls = {one: [replace(series, style="dotted") for series in noise[one]] for one in drawn}
    # One scale for both objectives, so that they can be compared.
    limits = _limits([one for some in (*attacked.values(), *controls.values()) for one in some], measure)
    models = _models(tried, runs)
    if tried.axis == "parameters" and all(model.parameters for model in models):
        # One figure, in which line styles distinguish the objectives. The control belongs to the objective that is
        # drawn solid.
        lines = [replace(one, style=STYLES[key] if key != drawn[0] else "") for key in drawn for one in attacked[key]]
        series = (*lines, *(controls[drawn[0]] if drawn else ()))
        yield OverModels(name, tried.named(measure), tried.axis, models, series, limits)
        return
    for key in drawn:
        title = f"{tried.named(measure)}, {key}"
        yield OverModels(f"{name}{key[0]}", title, tried.axis, models, (*attacked[key], *controls[key]), limits)


def _limits(series: Sequence[Series], measure: Effect) -> tuple[float, float] | None:
    if measure == "rank_change":
        return (0.0, 1.04)
    ends = [end for one in series for value in one.values if value for end in (value.low, value.mean, value.high)]
    known = [end for end in ends if end == end]
    low, high = min(known, default=0.0), max(known, default=0.0)
    room = 0.06 * (max(high, 0) - min(low, 0))
    return (min(low, 0) - (room if low < 0 else 0), max(high, 0) + room) if room else None


def _series(tried: Tried, runs: Sequence[TrustRun], variant: AttackVariant, measure: Effect) -> list[Series]:
    series = []
    for number, method in enumerate(tried.methods):
        values = tuple(_summary(run, method, variant, measure) for run in runs)
        if any(values):
            series.append(Series(method, number, values))
    return series


def _summary(run: TrustRun, method: str, variant: AttackVariant, measure: Effect) -> Summary | None:
    values = summary(effects(run, method, variant, measure).values())
    return values if values.count else None
