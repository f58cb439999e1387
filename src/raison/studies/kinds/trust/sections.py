"""The tables of a study of trust as grids of cells: areas, what attacks do, what was left out and why."""

import math
from collections.abc import Iterator, Mapping, Sequence

from raison.core.results import Summary
from raison.report import phrases
from raison.report.tables import Cell
from raison.report.trust_plots import EFFECT_NAMES
from raison.runs.models_figure import told
from raison.studies.kinds.trainings.sections import Grid
from raison.trust.records import Order
from raison.trust.results import TrustRun, TrustRuns, Variant
from raison.trust.tables import EFFECTS, MEASURES, Effect, Measure, areas, effects, held, summary

_PLACES = 2
_MEASURE_NAMES: dict[Measure, str] = {
    "spearman": "Spearman's correlation",
    "kendall": "Kendall's correlation",
    "overlap": "overlap of the top units",
}
_AREAS: dict[Order, str] = {
    "cascading": (
        "Area under the curve of the similarity with the explanation of the model as it was, over the share of blocks "
        "that are randomised, from the last one back. Near 1: the explanation hardly depends on the parameters; near 0 "
        "(for the overlap: near that of random orders): nothing of it is left."
    ),
    "independent": (
        "Mean similarity with the explanation of the model as it was where one block at a time is randomised. Near 1: "
        "the explanation hardly depends on single blocks."
    ),
}
_EFFECTS: dict[Effect, str] = {
    "rank_change": "Share of the first k ranks that another unit holds after the attack; low is robust.",
    "sum_change": (
        "By how much the scores of the k units that ranked first fall together; scores of different methods and models "
        "have different units."
    ),
    "probability_change": (
        "By how much the explained class's probability falls, negative where it rises; near 0 the changed text means "
        "the same to the model."
    ),
    "absolute_probability_change": "The same without its sign.",
}


def area_grids(study: TrustRuns) -> list[Grid]:
    """For each order and measure of similarity: one number for each method's curve in each run."""
    orders = dict.fromkeys(order for run in study.runs.values() for order in run.orders)
    return [_area_grid(study, order, measure) for order in orders for measure in MEASURES if study.runs]


def attack_grids(study: TrustRuns) -> list[Grid]:
    """For each measure of what attacks do: each method under each attack in each run, the control beside."""
    rows = _attacked_rows(study)
    if not rows:
        return []
    head = ("method, attack", *study.runs)
    grids = []
    for measure in EFFECTS:
        cells = tuple((label, _effects(study, row, measure)) for label, row in rows)
        grids.append(Grid(EFFECT_NAMES[measure], head, cells, f"{_EFFECTS[measure]} {_reading()}"))
    found = tuple((label, tuple(_held(run, *row) for run in study.runs.values())) for label, row in rows)
    return [*grids, Grid("Texts with a change that keeps the prediction", head, found, _HELD)]


_HELD = (
    "Of the texts that were attacked, those where a change was found under which the model predicts the same class. "
    "The others count with no change."
)


def left_out(study: TrustRuns) -> Iterator[tuple[str, str]]:
    """What was asked for and is in no table, with the reason; the same for all runs where it is."""
    found: dict[tuple[str, str], list[str]] = {}
    for run in study.runs.values():
        for what, why in _of_run(run):
            found.setdefault((what, why), []).append(run.name)
    for (what, why), names in found.items():
        yield what if len(names) == len(study.runs) else f"{what} ({', '.join(names)})", why


def model_grid(study: TrustRuns) -> Grid:
    """What is known of the models."""
    rows = []
    for key, about in study.header["models"].items():
        size, accuracy = about.get("parameters"), _accuracy(about.get("accuracy") or {})
        cells = (
            Cell(str(about["name"])),
            Cell(told(size) if size else "–"),
            Cell(str(about.get("blocks") or "–")),
            Cell("–" if accuracy is None else phrases.percent(accuracy)),
        )
        rows.append((key, cells))
    return Grid(
        "Models",
        ("model", "name", "parameters", "blocks", "accuracy"),
        tuple(rows),
        "Parameters: all, embeddings among them; those that layers share count once. Accuracy: on held-out texts, of "
        "models that were trained for the study.",
    )


def _accuracy(known: Mapping[str, float]) -> float | None:
    """On held-out texts, else on the first data that a model's card names."""
    return known.get("held_out", next(iter(known.values()), None))


def _of_run(run: TrustRun) -> Iterator[tuple[str, str]]:
    for method, why in ((run.header["randomisation"] or {}).get("left_out", {})).items():
        yield f"{method}: randomisation", why
    for kind, methods in ((run.header["attacks"] or {}).get("left_out", {})).items():
        named = "attacks in embedding space" if kind == "embedding" else "attacks by substitution"
        for method, why in methods.items():
            yield f"{method}: {named}", why
    boundary = (run.header["attacks"] or {}).get("boundary", ())
    if boundary:
        texts = ", ".join(str(text + 1) for text in boundary)
        yield (
            f"attacks on {phrases.count(len(boundary), 'text')} (number {texts})",
            ("the prediction sits on the boundary between two classes: any change may turn it"),
        )


def _area_grid(study: TrustRuns, order: Order, measure: Measure) -> Grid:
    rows = []
    for method in study.header["methods"]:
        if any(method in run.randomised for run in study.runs.values()):
            cells = tuple(_cell(summary(areas(run, method, order, measure).values())) for run in study.runs.values())
            rows.append((method, cells))
    name = f"{_MEASURE_NAMES[measure]}, {order}"
    return Grid(name[0].upper() + name[1:], ("method", *study.runs), tuple(rows), f"{_AREAS[order]} {_reading()}")


def _attacked_rows(study: TrustRuns) -> list[tuple[str, tuple[str, Variant]]]:
    variants = dict.fromkeys(variant for run in study.runs.values() for variant in run.variants)
    return [
        (f"{method}: {_named(variant)}", (method, variant))
        for method in study.header["methods"]
        for variant in variants
        if any(method in run.variants.get(variant, ()) for run in study.runs.values())
    ]


def _named(variant: Variant) -> str:
    if variant.attack == "substitution":
        return "words substituted"
    return variant.objective if variant.attack == "embedding" else f"random noise, {variant.objective}"


def _effects(study: TrustRuns, row: tuple[str, Variant], measure: Effect) -> tuple[Cell, ...]:
    found = [summary(effects(run, *row, measure).values()) for run in study.runs.values()]
    places = _places(found)
    return tuple(_cell(one, places) for one in found)


def _held(run: TrustRun, method: str, variant: Variant) -> Cell:
    found, of = held(run, method, variant) if run.header["attacks"] else (0, 0)
    return Cell(f"{found} of {of}" if of else "–")


def _cell(found: Summary, places: int = _PLACES) -> Cell:
    if not found.count:
        return Cell("–")
    known = math.isfinite(found.low) and math.isfinite(found.high)
    interval = f"[{phrases.number(found.low, places)}, {phrases.number(found.high, places)}]" if known else ""
    return Cell(phrases.number(found.mean, places), f"{interval} n = {found.count:,}".strip())


def _places(row: Sequence[Summary]) -> int:
    """Small changes of scores and probabilities must not all read 0.00."""
    sizes = [abs(value) for one in row for value in (one.mean, one.low, one.high) if math.isfinite(value)]
    largest = max(sizes, default=0.0)
    return max(_PLACES, phrases.decimals(largest) - 1) if largest else _PLACES


def _reading() -> str:
    return "Mean over texts with its 95 % bootstrap interval; draws of random values are averaged first."
