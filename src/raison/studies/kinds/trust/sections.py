"""The report of a study of trust: areas, effects of attacks, exclusions with reasons."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from raison.core.results.scores import Summary
from raison.report.figures.trust import (
    EFFECT_NAMES,
    Tried,
    attack_figures,
    randomisation_figures,
    substitution_figures,
)
from raison.report.style import phrases
from raison.report.style.colours import peak
from raison.report.style.phrases import interval
from raison.report.tables.records import NOTHING_THERE, Cell, Document, Part, Plots, Reasons, Section, Table
from raison.runs.models_figure import axis_of, parameter_count
from raison.studies.claims import claims_section
from raison.studies.kinds.trust.results import TrustRuns
from raison.trust.records import Order
from raison.trust.results import AttackVariant, TrustHead, TrustRun
from raison.trust.tables import EFFECTS, MEASURES, AgreementMeasure, Effect, areas, effects, held, summary

_PLACES = 2
_MEASURE_NAMES: dict[AgreementMeasure, str] = {
    "spearman": "Spearman's correlation",
    "kendall": "Kendall's correlation",
    "overlap": "overlap of the top units",
}
_AREAS: dict[Order, str] = {
    "cascading": (
        "Area under the curve of the similarity with the original model's explanation, over the share of randomised "
        "blocks, from the last one back. Near 1: the explanation hardly depends on the parameters; near 0 (for the "
        "overlap: near that of random orders): nothing of it remains."
    ),
    "independent": (
        "Mean similarity with the original model's explanation if one block at a time is randomised. Near 1: "
        "the explanation hardly depends on single blocks."
    ),
}
_EFFECTS: dict[Effect, str] = {
    "rank_change": "Share of the top k ranks held by other units after the attack; low is robust.",
    "sum_change": (
        "Total drop of the scores of the top k units; scores of different methods and models are not on the same scale."
    ),
    "probability_change": (
        "Drop of the explained class's probability, or of the score of a model with one number, negative if it rises; "
        "near 0 the changed text means the same to the model."
    ),
    "absolute_probability_change": "The same without its sign.",
}


_CURVES: dict[Order, str] = {
    "cascading": (
        "Spearman's correlation of the explanation with that of the original model (full), while more and more blocks "
        "are randomised, from the last one back. Mean over texts; the band: its 95 % interval. A line that stays high "
        "means that the method ignores what the model has learned."
    ),
    "independent": (
        "The same with one block at a time randomised and all others unchanged: from the last block on the "
        "left to the first on the right."
    ),
}
_ATTACKED = (
    "Mean over texts with its 95 % interval. Lines: solid for the unconstrained objective (only the prediction must "
    "hold), dashed for the constrained one (the probability, too); dotted: the best of random changes of the same "
    "size. Bars: the dotted mark is that control."
)
_READING = "Mean over texts with its 95 % bootstrap interval; draws of random values are averaged first."
_HELD = "The attacked texts for which a change was found that keeps the predicted class. The others count as unchanged."


def sections(results: TrustRuns, _target: Path | None = None) -> Document:
    """The study; it has no pages of single texts."""
    header = results.header
    tried = Tried(header.methods, tuple(results.runs.values()), header.models, axis_of(results.file) or "model")
    return Document(
        sections=(
            claims_section(results),
            Section("Randomised blocks", (*_curves(tried), *area_tables(results))),
            Section("Attacks", (*_attacked(tried), *attack_tables(results))),
            Section("Models", (model_table(results),), in_terminal=False),
            Section("Left out", (Reasons(tuple(left_out(results))),)),
        ),
        facts={"Texts": "; ".join(dict.fromkeys(_texts(run.header) for run in results.runs.values()))},
    )


def _texts(run: TrustHead) -> str:
    parts = ((run.randomisation, "randomised blocks"), (run.attacks, "attacks"))
    return f"{run.source}: {', '.join(f'{part.texts} for {words}' for part, words in parts if part)}"


def _curves(tried: Tried) -> Iterator[Part]:
    for order, caption in _CURVES.items():
        yield Plots(tuple(randomisation_figures(tried, order)), caption)


def _attacked(tried: Tried) -> Iterator[Part]:
    figures = [*attack_figures(tried), *substitution_figures(tried)]
    for place, (data, drawn) in enumerate(figures, start=1):
        yield Plots(tuple(drawn), _ATTACKED if place == len(figures) else "", data if len(tried.data) > 1 else "")


def area_tables(results: TrustRuns) -> list[Table]:
    """For each order and measure of similarity: one number for each method's curve in each run."""
    orders = dict.fromkeys(order for run in results.runs.values() for order in run.orders)
    return [_area_table(results, order, measure) for order in orders for measure in MEASURES if results.runs]


def attack_tables(results: TrustRuns) -> list[Table]:
    """For each measure of an attack's effect: each method under each attack in each run, with the control."""
    rows = _attacked_rows(results)
    if not rows:
        return []
    head = ("method, attack", *results.runs)
    tables = []
    for measure in EFFECTS:
        cells = tuple((label, _effects(results, *row, measure)) for label, row in rows)
        tables.append(Table(EFFECT_NAMES[measure], head, cells, f"{_EFFECTS[measure]} {_READING}"))
    counts = tuple((label, tuple(_held(run, *row) for run in results.runs.values())) for label, row in rows)
    return [*tables, Table("Texts with a change that keeps the prediction", head, counts, _HELD)]


def left_out(results: TrustRuns) -> Iterator[tuple[str, str]]:
    """Requested items that are missing from the tables, with the reason; once if it is the same for all runs."""
    runs_of: dict[tuple[str, str], list[str]] = {}
    for run in results.runs.values():
        for what, why in _of_run(run):
            runs_of.setdefault((what, why), []).append(run.name)
    for (what, why), names in runs_of.items():
        yield what if len(names) == len(results.runs) else f"{what} ({', '.join(names)})", why


def model_table(results: TrustRuns) -> Table:
    """Facts about the models."""
    rows = []
    for key, about in results.header.models.items():
        size, known = about.parameters, about.accuracy or {}
        # Accuracy on held-out texts, or on the first data that a model's card names.
        accuracy = known.get("held_out", next(iter(known.values()), None))
        cells = (
            Cell(about.name),
            Cell(parameter_count(size) if size else "–"),
            Cell(str(about.blocks or "–")),
            Cell("–" if accuracy is None else phrases.percent(accuracy)),
        )
        rows.append((key, cells))
    return Table(
        "Models",
        ("model", "name", "parameters", "blocks", "accuracy"),
        tuple(rows),
        "Parameters: all, including embeddings; shared ones count once. Accuracy: on held-out texts of the "
        "training, for models trained for the study; claims state that on the study's data.",
    )


def _of_run(run: TrustRun) -> Iterator[tuple[str, str]]:
    randomised, attacked = run.header.randomisation, run.header.attacks
    for method, why in randomised.left_out.items() if randomised else ():
        yield f"{method}: randomisation", why
    for kind, methods in attacked.left_out.items() if attacked else ():
        named = "attacks in embedding space" if kind == "embedding" else "attacks by substitution"
        for method, why in methods.items():
            yield f"{method}: {named}", why
    boundary = attacked.boundary if attacked else ()
    if boundary:
        texts = ", ".join(str(text + 1) for text in boundary)
        yield (
            f"attacks on {phrases.count(len(boundary), 'text')} (number {texts})",
            ("the prediction is on the boundary between two classes: any change may flip it"),
        )


def _area_table(results: TrustRuns, order: Order, measure: AgreementMeasure) -> Table:
    rows = []
    for method in results.header.methods:
        if any(method in run.randomised for run in results.runs.values()):
            cells = tuple(_cell(summary(areas(run, method, order, measure).values())) for run in results.runs.values())
            rows.append((method, cells))
    name = f"{_MEASURE_NAMES[measure]}, {order}"
    return Table(name[0].upper() + name[1:], ("method", *results.runs), tuple(rows), f"{_AREAS[order]} {_READING}")


def _attacked_rows(results: TrustRuns) -> list[tuple[str, tuple[str, AttackVariant]]]:
    variants = dict.fromkeys(variant for run in results.runs.values() for variant in run.variants)
    return [
        (f"{method}: {_named(variant)}", (method, variant))
        for method in results.header.methods
        for variant in variants
        if any(method in run.variants.get(variant, ()) for run in results.runs.values())
    ]


def _named(variant: AttackVariant) -> str:
    if variant.attack == "substitution":
        return "words substituted"
    return variant.objective if variant.attack == "embedding" else f"random noise, {variant.objective}"


def _effects(results: TrustRuns, method: str, variant: AttackVariant, measure: Effect) -> tuple[Cell, ...]:
    summaries = [summary(effects(run, method, variant, measure).values()) for run in results.runs.values()]
    places = _places(summaries)
    return tuple(_cell(one, places) for one in summaries)


def _held(run: TrustRun, method: str, variant: AttackVariant) -> Cell:
    kept, of = held(run, method, variant) if run.header.attacks else (0, 0)
    return Cell(f"{kept} of {of}" if of else "–")


def _cell(values: Summary, places: int = _PLACES) -> Cell:
    if not values.count:
        return NOTHING_THERE
    interval_text = f"{interval(values.low, values.high, places)} n = {values.count:,}".strip()
    return Cell(phrases.number(values.mean, places), interval_text)


def _places(row: Sequence[Summary]) -> int:
    """Small changes of scores and probabilities must not all be shown as 0.00."""
    largest = peak(value for one in row for value in (one.mean, one.low, one.high))
    return max(_PLACES, phrases.decimals(largest) - 1)
