"""The page of a study: what it is, what it claims, its tables and plots, and the study file itself."""

from collections.abc import Iterator, Sequence
from urllib.parse import quote

from raison.core.results import Comparison, Summary
from raison.report import study_tables
from raison.report.html_tables import scores_table, settings_list
from raison.report.markup import NOTHING, Markup, document, html, joined, lines
from raison.report.model_plots import Figure, Series, model_figure
from raison.report.parts import about, figures, study_file, warnings_box
from raison.report.plots import Line, models_plot, pareto_plot, spread_plot
from raison.runs.agreement import PairAgreement
from raison.runs.models_figure import axis_of
from raison.runs.statistics import directed, pareto
from raison.studies.kinds.comparison.claims import verdicts
from raison.studies.kinds.comparison.results import StudyRuns
from raison.studies.kinds.comparison.section import Section, limit_of, note, places_of, warnings

STYLES = ("explanation.css", "page.css", "study.css")


def page(study: StudyRuns, sections: Sequence[Section], draw: bool) -> str:
    """The standalone page; it links to nothing but the files beside it. `draw` puts plots in."""
    parts = [
        html("<h1>{}</h1>", study.title),
        _about(study, sections),
        warnings_box(warnings(study, sections)),
        _contents(study, sections, draw),
        study_tables.claims(verdicts(study)),
        *(_run(study, section, number, draw) for number, section in enumerate(sections)),
        _across(study, sections) if draw else NOTHING,
        study_file(study.text, study.digest) if study.text else NOTHING,
    ]
    return document(study.title, lines(parts), STYLES)


def _about(study: StudyRuns, sections: Sequence[Section]) -> Markup:
    limit = limit_of(study)
    versions = {"raison": ", ".join(sorted({section.run.header["raison"] for section in sections})), **study.versions}
    facts = {
        "Limit": None if limit is None else f"{limit} texts of each data set",
        "Digest": study.digest,
        "Versions": ", ".join(f"{name} {version}" for name, version in versions.items() if version),
    }
    examples = html(
        '<dt>Examples</dt><dd><a href="examples.html">Texts with marks</a>, <a href="examples.md">Markdown</a></dd>\n'
    )
    return about(study.file, facts, examples if any(section.examples for section in sections) else NOTHING)


def _contents(study: StudyRuns, sections: Sequence[Section], draw: bool) -> Markup:
    if len(sections) < 2:
        return NOTHING
    entries = [("claims", "Claims")] * bool(study.claims)
    entries += [(f"run-{section.name}", section.title) for section in sections]
    entries += [("models", "Across models")] * bool(draw and _groups(sections))
    items = joined(html('<li><a href="#{}">{}</a></li>\n', quote(anchor), title) for anchor, title in entries)
    return html('<nav aria-label="Contents"><ol>\n{}</ol></nav>', items)


def _run(study: StudyRuns, section: Section, number: int, draw: bool) -> Markup:
    table = section.table
    parts = [html("<h2>{}</h2>", section.title)]
    if section.texts:
        parts.append(html('<p><a href="{}">The texts, each with all explanations</a></p>', quote(section.texts)))
    if table is None:
        parts.append(html("<p>No text is finished yet.</p>"))
    else:
        parts += [
            scores_table(table),
            html('<p class="caption">{}</p>', note(study, section)),
            settings_list(table),
            _fronts(table, number) if draw else NOTHING,
            study_tables.differences(table),
            study_tables.selections(table),
            study_tables.agreements(section.agreement),
            _spreads(section.agreement, number) if draw else NOTHING,
        ]
    return html('<article class="raison" id="run-{}">\n{}</article>', section.name, lines(parts))


def _fronts(table: Comparison, run: int) -> Markup:
    """A plot against cost for every metric with a direction."""
    drawn = figures(
        pareto_plot(f"r{run}m{number}", metric, higher, pareto(table, metric))
        for number, (metric, higher) in enumerate(directed(table).items())
    )
    if not drawn:
        return NOTHING
    return html(
        "<h3>Against cost</h3>\n{}\n"
        '<p class="caption">Mean with its 95 % interval against passes per text. Blue, joined by the line: methods '
        "that no other one beats in both. Hollow: maps chosen by the plot's own metric; those that another metric "
        "chose are left out. A backward pass counts as two forward passes.</p>",
        drawn,
    )


def _spreads(pairs: Sequence[PairAgreement], run: int) -> Markup:
    """How the cosine of a method with each of the others varies over texts; nothing without agreement."""
    drawn = []
    known = [pair for pair in pairs if pair.cosines]
    for number, anchor in enumerate(dict.fromkeys(name for pair in known for name in (pair.first, pair.second))):
        rows = [(pair.first, pair.cosines) for pair in known if pair.second == anchor]
        rows += [(pair.second, pair.cosines) for pair in known if pair.first == anchor]
        drawn.append(spread_plot(f"s{run}n{number}", f"cosine with {anchor}", rows))
    if not drawn:
        return NOTHING
    return html(
        '<h3>From text to text</h3>\n{}\n<p class="caption">Cosine of two methods\' '
        "scores of a text: median (dot), quartiles (thick), 5th and 95th percentile (thin) over texts.</p>",
        figures(drawn),
    )


def _groups(sections: Sequence[Section]) -> dict[str, list[Section]]:
    """The data sets on which several models were judged, with their runs."""
    found: dict[str, list[Section]] = {}
    for section in sections:
        if section.table is not None:
            found.setdefault(section.table.data, []).append(section)
    return {data: runs for data, runs in found.items() if len(runs) > 1}


def _across(study: StudyRuns, sections: Sequence[Section]) -> Markup:
    """A figure over the models, for each data set and metric: as the study asks for, else lines in its order."""
    order = html("models in the order of the study")
    if axis_of(study.file) is not None:
        order = html("lines over the models' numbers of parameters, or a group of bars for each model")
    parts = [
        html("<h3>{}</h3>\n{}", data, figures(_figures(study, runs, place)))
        for place, (data, runs) in enumerate(_groups(sections).items())
    ]
    if not parts:
        return NOTHING
    return html(
        '<article class="raison" id="models">\n<h2>Across models</h2>\n{}\n'
        '<p class="caption">Means, with 95 % intervals as bands or bars; {}.</p></article>',
        lines(parts),
        order,
    )


def _figures(study: StudyRuns, runs: Sequence[Section], place: int) -> Iterator[Markup]:
    axis = axis_of(study.file)
    if axis is None:
        yield from _lines(runs, place)
        return
    tables = [section.table for section in runs if section.table is not None]
    models = places_of(study, runs)
    methods = dict.fromkeys(row.method for table in tables for row in table.rows if row.selected_by is None)
    for number, (metric, higher) in enumerate(directed(tables[0]).items()):
        series = tuple(
            Series(method, look, tuple(_summary(table, method, metric) for table in tables))
            for look, method in enumerate(methods)
        )
        yield model_figure(Figure(f"a{place}m{number}", f"{metric} {'↑' if higher else '↓'}", axis, models, series))


def _lines(runs: Sequence[Section], place: int) -> Iterator[Markup]:
    tables = [section.table for section in runs if section.table is not None]
    models = [section.name.partition("--")[0] for section in runs]
    methods = dict.fromkeys(row.method for table in tables for row in table.rows if row.selected_by is None)
    for number, (metric, higher) in enumerate(directed(tables[0]).items()):
        lines = [Line(method, tuple(_summary(table, method, metric) for table in tables)) for method in methods]
        yield models_plot(f"a{place}m{number}", metric, higher, models, lines)


def _summary(table: Comparison, method: str, metric: str) -> Summary | None:
    found = [scores for row in table.rows if row.method == method for scores in row.metrics if scores.metric == metric]
    return found[0].summary if found and found[0].summary.count else None
