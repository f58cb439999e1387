"""The report of a comparison: scores against cost, differences from the best, selection, agreement, examples."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from raison.core.errors import DataError
from raison.core.results.scores import Comparison, Summary
from raison.numerics.statistics.paired import Difference
from raison.numerics.statistics.power import SIGNIFICANCE
from raison.report.figures.data import Curve, Front, Lines, OverModels, Series, Spread, spot
from raison.report.pages.examples import Example, ExamplesAsked, asked_in, examples_of
from raison.report.pages.examples_page import Examples, write_examples
from raison.report.pages.shown import shown_texts
from raison.report.pages.texts import write_texts
from raison.report.style import phrases
from raison.report.style.phrases import interval
from raison.report.tables.agreement_matrices import agreements
from raison.report.tables.records import (
    ARROWS,
    NOTHING_THERE,
    Cell,
    Document,
    Heading,
    Part,
    Plots,
    ScoresTable,
    Section,
    Table,
    Text,
)
from raison.runs.agreement import PairAgreement, read_agreement
from raison.runs.models_figure import FiguredModel, axis_of
from raison.runs.run import Run
from raison.runs.statistics import PairedContrast, Selection, contrasts, directed, mean_ranks, pareto, selection
from raison.runs.table import comparison
from raison.studies.claims import claims_section
from raison.studies.kinds.comparison.curves import curves
from raison.studies.kinds.comparison.results import StudyRuns

TEXTS = "texts"
_FRONTS = (
    "Mean with its 95 % interval against passes per text. Blue, joined by the line: methods that no other method "
    "beats in both. Hollow, with †: maps selected by the plot's own metric; maps selected by another metric are left "
    "out. A backward pass counts as two forward passes."
)
_CURVES = (
    "Mean over the texts of the curve that the metric integrates, by the share of units, with its 95 % interval at "
    "each share. Each text's curve is interpolated between its units."
)
_DIFFERENCES = (
    "Method minus the best of the column on the same texts, with its 95 % interval. p: from a paired permutation test, "
    "or, if that is larger, the chance that any two of equally good methods differ as much, because any of them could "
    "have been the best; times the number of metrics. Grey: not distinguishable from the best (p of "
    f"{SIGNIFICANCE} or more). Mean rank: over the metrics with a direction, 1 is best."
)
_SELECTIONS = (
    "Rows: the metric that selected each text's map. Columns: the metric that evaluates it. Below a value: its "
    "difference from selection by the evaluating metric, with the 95 % interval. The row of random maps selected in "
    "the same way is the control: the gain from selection alone."
)
_SPREADS = (
    "Cosine of two methods' scores of a text: median (dot), quartiles (thick), 5th and 95th percentile (thin) over "
    "texts."
)


@dataclass(frozen=True, slots=True)
class _RunSection:
    """One run; `table` is None while no text is finished, `texts` the page that lists its texts, if any."""

    name: str
    title: str
    run: Run
    table: Comparison | None
    texts: str
    examples: tuple[tuple[Example, ...], ...] = ()


def sections(results: StudyRuns, target: Path | None = None) -> Document:
    """The study; pages of texts and examples are written into the folder `target`, if explanations are stored with the
    records."""
    examples = asked_in(results.file)
    titles = titles_of(results.runs)
    runs = [_told(name, titles[name], run, target, examples) for name, run in results.runs.items()]
    files = _examples(results, runs, examples, target)
    return Document(
        sections=(
            claims_section(results),
            *(Section(one.title, tuple(_run(results, one, n)), f"run-{one.name}") for n, one in enumerate(runs)),
            Section("Across models", tuple(_across(results, runs)), "models"),
        ),
        warnings=() if target is None else tuple(_warnings(runs, examples is not None)),
        links=files,
    )


def titles_of(runs: Mapping[str, Run]) -> dict[str, str]:
    """Each run's model and data; with its name if these do not tell it from another."""
    titles = {name: f"{run.header.model} on {run.header.data}" for name, run in runs.items()}
    count = Counter(titles.values())
    return {name: title if count[title] == 1 else f"{title} ({name})" for name, title in titles.items()}


def _told(name: str, title: str, run: Run, target: Path | None, wanted: ExamplesAsked | None) -> _RunSection:
    try:
        table = comparison(run)
    except DataError:
        # No text has results of all methods yet; the page reports this.
        table = None
    if target is None:
        return _RunSection(name, title, run, table, "")
    texts = shown_texts(run)
    there = write_texts(run, texts, title, target / TEXTS / name)
    examples = examples_of(run, texts, wanted) if wanted else ()
    return _RunSection(name, title, run, table, f"{TEXTS}/{name}/index.html" if there else "", examples)


def _examples(
    results: StudyRuns, runs: Sequence[_RunSection], wanted: ExamplesAsked | None, target: Path | None
) -> dict[str, dict[str, str]]:
    """Links to the pages of examples, which are written."""
    shown = [
        Examples(one.name, one.title, one.run.header.data, one.examples, one.texts, _drawing(one.run))
        for one in runs
        if one.examples
    ]
    if wanted is None or target is None or not shown:
        return {}
    origin = (
        f"{results.title}, digest {results.digest}, raison {', '.join(sorted({o.run.header.raison for o in runs}))}."
    )
    return write_examples(shown, target, results.title, origin, wanted.top)


def _drawing(run: Run) -> bool:
    """Whether some methods were run under several seeds."""
    return any(len(row.seeds) > 1 for row in run.header.rows)


def _warnings(runs: Sequence[_RunSection], examples: bool) -> Iterator[str]:
    """The missing pages of single texts, one sentence each."""
    lacking = "pages of single texts" + (" and of examples" if examples else "")
    for one in runs:
        if one.run.records and not one.texts:
            yield f"{one.name}: records only: {lacking} need explanations.jsonl, which is not in this folder."


def _run(results: StudyRuns, one: _RunSection, number: int) -> Iterator[Part]:
    if one.texts:
        yield Text("The texts, each with all explanations", one.texts, aside=True)
    table = one.table
    yield ScoresTable(table, _note(results, one))
    if table is None:
        return
    fronts = tuple(
        Front(f"r{number}m{place}", metric, higher, tuple(pareto(table, metric)))
        for place, (metric, higher) in enumerate(directed(table).items())
    )
    yield Plots(fronts, _FRONTS, "Against cost")
    yield Plots(tuple(curves(one.run, number)), _CURVES, "Curves")
    yield from differences(table)
    yield from selections(table)
    pairs = read_agreement(one.run.folder) if one.run.folder else ()
    yield from agreements(pairs)
    yield Plots(tuple(spreads(pairs, number)), _SPREADS, "Variation between texts")


def _note(results: StudyRuns, one: _RunSection) -> str:
    """The end of a table's caption: seeds, and the digest that identifies these numbers."""
    seeds = list(dict.fromkeys(seed for _, seed in one.run.header.keys))
    several = f"Methods that draw are means over the seeds {', '.join(map(str, seeds))}. " if len(seeds) > 1 else ""
    return f"{several}{results.title}, digest {results.digest}, raison {one.run.header.raison}."


def differences(table: Comparison) -> Iterator[Part]:
    """Each method against the best of each column, by mean rank; nothing if no metric has a direction."""
    directions = directed(table)
    if not directions:
        return
    by_method = {metric: {one.method: one for one in listed} for metric, listed in contrasts(table).items()}
    ranks = mean_ranks(table)
    order = sorted(ranks, key=lambda method: (math.isnan(ranks[method]), ranks[method]))
    places = {
        name: phrases.places(*(one.difference.mean for one in column.values())) for name, column in by_method.items()
    }
    rows = tuple(
        (
            method,
            (
                Cell(phrases.number(ranks[method], 2)),
                *(_contrast(by_method[name].get(method), places[name]) for name in directions),
            ),
        )
        for method in order
    )
    head = ("method", "mean rank", *(f"{name} {ARROWS[up]}" for name, up in directions.items()))
    yield Heading("Compared with the best")
    yield Table("", head, rows, _DIFFERENCES, aside=True)


def _contrast(contrast: PairedContrast | None, places: int) -> Cell:
    if contrast is None:
        return NOTHING_THERE
    if contrast.method == contrast.best:
        return Cell("best", rank=1)
    p = "n/a" if math.isnan(contrast.p) else "p < 0.001" if contrast.p < 0.001 else f"p = {contrast.p:.3f}"
    gap = contrast.difference
    mean, between = phrases.signed(gap.mean, places), interval(gap.low, gap.high, places)
    return Cell(mean, between, lead=p, soft=not contrast.p < SIGNIFICANCE)


def selections(table: Comparison) -> Iterator[Part]:
    """The effect of selecting maps by one metric on the others, with controls; nothing without selected maps."""
    chosen = selection(table)
    if chosen:
        yield Heading("Selected by one metric, evaluated by another")
    for one in chosen:
        yield Table(one.method, ("chosen by", *one.judges), tuple(_matrix(one)), _SELECTIONS, aside=True)


def _matrix(chosen: Selection) -> Iterator[tuple[str, tuple[Cell, ...]]]:
    places = [
        phrases.places(*(row[column].summary.mean for row in chosen.values)) for column in range(len(chosen.judges))
    ]
    for chooser, values, gaps in zip(chosen.choosers, chosen.values, chosen.differences, strict=True):
        yield (
            "not chosen" if chooser is None else chooser,
            tuple(
                Cell(
                    phrases.number(scores.summary.mean, digits),
                    "" if gap is None else _gap_line(gap, digits),
                    rank=int(judge == chooser),
                )
                for judge, scores, gap, digits in zip(chosen.judges, values, gaps, places, strict=True)
            ),
        )


def _gap_line(gap: Difference, places: int) -> str:
    """A difference and its interval in one line."""
    return f"{phrases.signed(gap.mean, places)} {interval(gap.low, gap.high, places)}".strip()


def spreads(pairs: Sequence[PairAgreement], run: int) -> Iterator[Spread]:
    """How the cosine of a method with each of the others varies over texts; nothing without agreement."""
    known = [pair for pair in pairs if pair.cosines]
    for number, anchor in enumerate(dict.fromkeys(name for pair in known for name in (pair.first, pair.second))):
        rows = [(pair.first, pair.cosines) for pair in known if pair.second == anchor]
        rows += [(pair.second, pair.cosines) for pair in known if pair.first == anchor]
        yield Spread(f"s{run}n{number}", f"cosine with {anchor}", tuple(rows))


def _across(results: StudyRuns, runs: Sequence[_RunSection]) -> Iterator[Part]:
    """A figure over the models for each data set and metric, as the study requests, or lines in its order."""
    groups: dict[str, list[_RunSection]] = {}
    for one in runs:
        if one.table is not None:
            groups.setdefault(one.table.data, []).append(one)
    groups = {data: members for data, members in groups.items() if len(members) > 1}
    order = "models in the order of the study"
    if axis_of(results.file) is not None:
        order = "lines over the models' numbers of parameters, or a group of bars for each model"
    for place, (data, members) in enumerate(groups.items()):
        caption = f"Means, with 95 % intervals as bands or bars; {order}." if place == len(groups) - 1 else ""
        yield Plots(tuple(_over_models(results, members, place)), caption, data)


def _over_models(results: StudyRuns, runs: Sequence[_RunSection], place: int) -> Iterator[Lines | OverModels]:
    axis = axis_of(results.file)
    tables = [one.table for one in runs if one.table is not None]
    keys = [one.name.partition("--")[0] for one in runs]
    models = tuple(FiguredModel(key, results.about(one.name).parameters) for key, one in zip(keys, runs, strict=True))
    methods = dict.fromkeys(row.method for table in tables for row in table.rows if row.selected_by is None)
    for number, (metric, higher) in enumerate(directed(tables[0]).items()):
        name, title = f"a{place}m{number}", f"{metric} {ARROWS[higher]}"
        values = {method: tuple(_summary(table, method, metric) for table in tables) for method in methods}
        if axis is not None:
            series = tuple(Series(method, look, values[method]) for look, method in enumerate(methods))
            yield OverModels(name, title, axis, models, series)
            continue
        curves = [
            Curve(method, look, tuple(spot(x, one) for x, one in enumerate(values[method]) if one is not None))
            for look, method in enumerate(methods)
        ]
        short = max(6, 48 // len(keys))
        ticks = {float(x): phrases.shorten(key, short) for x, key in enumerate(keys)}
        yield Lines(name, title, f"{title} over models", tuple(one for one in curves if one.spots), ticks=ticks)


def _summary(table: Comparison, method: str, metric: str) -> Summary | None:
    cells = [scores for row in table.rows if row.method == method for scores in row.metrics if scores.metric == metric]
    return cells[0].summary if cells and cells[0].summary.count else None
