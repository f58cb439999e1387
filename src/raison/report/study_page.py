"""The page of a study: what it is, what it claims, its tables and plots, and the study file itself."""

from collections.abc import Iterator, Sequence
from urllib.parse import quote

from raison.core.results import Comparison, Summary
from raison.report import study_tables
from raison.report.html_tables import scores_table, settings_list
from raison.report.markup import document, escape
from raison.report.model_plots import Figure, Series, model_figure
from raison.report.plots import Line, models_plot, pareto_plot, spread_plot
from raison.report.study_section import Section, limit_of, note, places_of, warnings
from raison.runs.agreement import PairAgreement
from raison.runs.claims import verdicts
from raison.runs.models_figure import axis_of
from raison.runs.statistics import directed, pareto
from raison.runs.study import FILE, StudyRuns

STYLES = ("explanation.css", "page.css", "study.css")


def page(study: StudyRuns, sections: Sequence[Section], draw: bool) -> str:
    """The standalone page; it links to nothing but the files beside it. `draw` puts plots in."""
    parts = [
        f"<h1>{escape(study.title)}</h1>",
        _about(study, sections),
        _warnings(warnings(study, sections)),
        _contents(study, sections, draw),
        study_tables.claims(verdicts(study)),
        *(_run(study, section, number, draw) for number, section in enumerate(sections)),
        _across(study, sections) if draw else "",
        _file(study),
    ]
    return document(study.title, "\n".join(part for part in parts if part), STYLES)


def _about(study: StudyRuns, sections: Sequence[Section]) -> str:
    file = study.file
    about = "\n".join(f"<p>{escape(' '.join(part.split()))}</p>" for part in str(file.get("about", "")).split("\n\n"))
    limit = limit_of(study)
    versions = {"raison": ", ".join(sorted({section.run.header["raison"] for section in sections})), **study.versions}
    facts = {
        "Source": file.get("source"),
        "Reference": file.get("reference"),
        "Size": file.get("size"),
        "Limit": None if limit is None else f"{limit} texts of each data set",
        "Digest": study.digest,
        "Versions": ", ".join(f"{name} {version}" for name, version in versions.items() if version),
    }
    items = "".join(f"<dt>{name}</dt><dd>{escape(value)}</dd>\n" for name, value in facts.items() if value)
    files = '<dt>Tables</dt><dd><a href="tables.md">Markdown</a>, <a href="tables.tex">LaTeX</a></dd>\n'
    if any(section.examples for section in sections):
        files += '<dt>Examples</dt><dd><a href="examples.html">Texts with marks</a>, <a href="examples.md">Markdown</a>'
        files += "</dd>\n"
    return f'<article class="raison">\n{about}\n<dl>\n{items}{files}</dl></article>'


def _warnings(sentences: Sequence[str]) -> str:
    if not sentences:
        return ""
    items = "".join(f"<li>{escape(sentence)}</li>\n" for sentence in sentences)
    return (
        f'<article class="raison">\n<h2>Before you read the numbers</h2>\n<ul class="warnings">\n{items}</ul></article>'
    )


def _contents(study: StudyRuns, sections: Sequence[Section], draw: bool) -> str:
    if len(sections) < 2:
        return ""
    entries = [("claims", "Claims")] * bool(study.claims)
    entries += [(f"run-{section.name}", section.title) for section in sections]
    entries += [("models", "Across models")] * bool(draw and _groups(sections))
    items = "".join(f'<li><a href="#{quote(anchor)}">{escape(title)}</a></li>\n' for anchor, title in entries)
    return f'<nav aria-label="Contents"><ol>\n{items}</ol></nav>'


def _run(study: StudyRuns, section: Section, number: int, draw: bool) -> str:
    table = section.table
    parts = [f"<h2>{escape(section.title)}</h2>"]
    if section.texts:
        parts.append(f'<p><a href="{quote(section.texts)}">The texts, each with all explanations</a></p>')
    if table is None:
        parts.append("<p>No text is finished yet.</p>")
    else:
        parts += [
            scores_table(table),
            f'<p class="caption">{escape(note(study, section))}</p>',
            settings_list(table),
            _fronts(table, number) if draw else "",
            study_tables.differences(table),
            study_tables.selections(table),
            study_tables.agreements(section.agreement),
            _spreads(section.agreement, number) if draw else "",
        ]
    body = "\n".join(part for part in parts if part)
    return f'<article class="raison" id="run-{escape(section.name)}">\n{body}</article>'


def _fronts(table: Comparison, run: int) -> str:
    """A plot against cost for every metric with a direction."""
    figures = "\n".join(
        f"<figure>{pareto_plot(f'r{run}m{number}', metric, higher, pareto(table, metric))}</figure>"
        for number, (metric, higher) in enumerate(directed(table).items())
    )
    if not figures:
        return ""
    return (
        f'<h3>Against cost</h3>\n<div class="plots">\n{figures}</div>\n'
        '<p class="caption">Mean with its 95 % interval against passes per text. Blue, joined by the line: methods '
        "that no other one beats in both. Hollow: maps chosen by the plot's own metric; those that another metric "
        "chose are left out. A backward pass counts as two forward passes.</p>"
    )


def _spreads(pairs: Sequence[PairAgreement], run: int) -> str:
    """How the cosine of a method with each of the others varies over texts; "" without agreement."""
    figures = []
    known = [pair for pair in pairs if pair.cosines]
    for number, anchor in enumerate(dict.fromkeys(name for pair in known for name in (pair.first, pair.second))):
        rows = [(pair.first, pair.cosines) for pair in known if pair.second == anchor]
        rows += [(pair.second, pair.cosines) for pair in known if pair.first == anchor]
        figures.append(f"<figure>{spread_plot(f's{run}n{number}', f'cosine with {anchor}', rows)}</figure>")
    if not figures:
        return ""
    body = "\n".join(figures)
    return (
        f'<h3>From text to text</h3>\n<div class="plots">\n{body}</div>\n<p class="caption">Cosine of two methods\' '
        "scores of a text: median (dot), quartiles (thick), 5th and 95th percentile (thin) over texts.</p>"
    )


def _groups(sections: Sequence[Section]) -> dict[str, list[Section]]:
    """The data sets on which several models were judged, with their runs."""
    found: dict[str, list[Section]] = {}
    for section in sections:
        if section.table is not None:
            found.setdefault(section.table.data, []).append(section)
    return {data: runs for data, runs in found.items() if len(runs) > 1}


def _across(study: StudyRuns, sections: Sequence[Section]) -> str:
    """A figure over the models, for each data set and metric: as the study asks for, else lines in its order."""
    order = "models in the order of the study"
    if axis_of(study.file) is not None:
        order = "lines over the models' numbers of parameters, or a group of bars for each model"
    parts = []
    for place, (data, runs) in enumerate(_groups(sections).items()):
        figures = "\n".join(f"<figure>{svg}</figure>" for svg in _figures(study, runs, place))
        parts.append(f'<h3>{escape(data)}</h3>\n<div class="plots">\n{figures}</div>')
    if not parts:
        return ""
    body = "\n".join(parts)
    return (
        f'<article class="raison" id="models">\n<h2>Across models</h2>\n{body}\n'
        f'<p class="caption">Means, with 95 % intervals as bands or bars; {order}.</p></article>'
    )


def _figures(study: StudyRuns, runs: Sequence[Section], place: int) -> Iterator[str]:
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


def _lines(runs: Sequence[Section], place: int) -> Iterator[str]:
    tables = [section.table for section in runs if section.table is not None]
    models = [section.name.partition("--")[0] for section in runs]
    methods = dict.fromkeys(row.method for table in tables for row in table.rows if row.selected_by is None)
    for number, (metric, higher) in enumerate(directed(tables[0]).items()):
        lines = [Line(method, tuple(_summary(table, method, metric) for table in tables)) for method in methods]
        yield models_plot(f"a{place}m{number}", metric, higher, models, lines)


def _summary(table: Comparison, method: str, metric: str) -> Summary | None:
    found = [scores for row in table.rows if row.method == method for scores in row.metrics if scores.metric == metric]
    return found[0].summary if found and found[0].summary.count else None


def _file(study: StudyRuns) -> str:
    if not study.text:
        return ""
    return (
        f'<article class="raison">\n<details><summary>{FILE}, digest {escape(study.digest)}</summary>\n'
        f'<pre tabindex="0">{escape(study.text)}</pre></details></article>'
    )
