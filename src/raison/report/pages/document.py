"""A document as a standalone page, which links to nothing but the files beside it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from urllib.parse import quote

from raison.jobs.folder import FILE
from raison.report.explanations.html import compact
from raison.report.figures.plots import drawn
from raison.report.style.colours import SIGNED
from raison.report.style.markup import NOTHING, Markup, asset, document, html, joined, lines
from raison.report.tables.claims import claims_grid
from raison.report.tables.html import breakable, grid, marked, minus, scores_table, settings_list
from raison.report.tables.records import (
    Advice,
    Answer,
    Answers,
    Cell,
    Claims,
    Document,
    Explained,
    Facts,
    Heading,
    Part,
    Plots,
    Reasons,
    ScoresTable,
    Section,
    Table,
    Text,
    filled,
)

STYLES = ("explanation.css", "page.css", "study.css")


def page(told: Document, draw: bool) -> str:
    """The whole page; `draw` puts plots in."""
    parts = [part for section in told.shown for part in section.parts]
    explained = any(isinstance(part, Explained) for part in parts)
    lights = any(isinstance(part, Advice | Answers) for part in parts)
    shown = [section for section in told.shown if draw or any(_beside_plots(part) for part in section.parts)]
    body = [
        html("<h1>{}</h1>", told.title),
        _up(told.up),
        _about(told) if told.text or told.digest else NOTHING,
        _warnings(told.warnings),
        _contents(shown) if len(shown) > 2 and not told.up else NOTHING,
        *(_section(section, draw) for section in shown),
        html('<div id="tip" role="tooltip" hidden></div>') if explained else NOTHING,
        _file(told) if told.text else NOTHING,
    ]
    styles = (*STYLES, "audit.css") if lights else STYLES
    return document(told.title, lines(body), styles, asset("page.js") if explained else NOTHING)


def _beside_plots(part: Part) -> bool:
    return not isinstance(part, Plots | Heading) and filled(part)


def _up(links: Mapping[str, str]) -> Markup:
    if not links:
        return NOTHING
    items = joined((html('<a href="{}">{}</a>', quote(link), name) for name, link in links.items()), " ")
    return html('<nav class="steps" aria-label="Pages">{}</nav>', items)


def _about(told: Document) -> Markup:
    """What a study file says of itself, facts beside it, and links to its tables and to what else there is."""
    paragraphs = [" ".join(part.split()) for part in str(told.file.get("about", "")).split("\n\n")]
    of_file = {name: told.file.get(name.lower()) for name in ("Source", "Reference", "Size")}
    files = {"Tables": {"Markdown": "tables.md", "LaTeX": "tables.tex"}, **told.links}
    return html(
        '<article class="raison">\n{}\n<dl>\n{}{}</dl></article>',
        lines(html("<p>{}</p>", paragraph) for paragraph in paragraphs),
        definitions({**of_file, **told.facts}),
        joined(html("<dt>{}</dt><dd>{}</dd>\n", name, _links(links)) for name, links in files.items()),
    )


def _links(links: Mapping[str, str]) -> Markup:
    return joined((html('<a href="{}">{}</a>', quote(link), name) for name, link in links.items()), ", ")


def definitions(facts: Mapping[str, object]) -> Markup:
    """Names with their values; what is empty is left out."""
    return joined(html("<dt>{}</dt><dd>{}</dd>\n", name, value) for name, value in facts.items() if value)


def _warnings(sentences: Sequence[str]) -> Markup:
    """Why the numbers cover only a subset of the study; nothing without sentences."""
    if not sentences:
        return NOTHING
    return html(
        '<article class="raison">\n<h2>Before you read the numbers</h2>\n<ul class="warnings">\n{}</ul></article>',
        joined(html("<li>{}</li>\n", sentence) for sentence in sentences),
    )


def _contents(sections: Sequence[Section]) -> Markup:
    titled = [one for one in sections if one.title]
    items = joined(html('<li><a href="#{}">{}</a></li>\n', quote(one.place), one.title) for one in titled)
    return html('<nav aria-label="Contents"><ol>\n{}</ol></nav>', items)


def _file(told: Document) -> Markup:
    """The study file itself, folded."""
    return html(
        '<article class="raison">\n<details><summary>{}, digest {}</summary>\n<pre tabindex="0">{}</pre></details>'
        "</article>",
        FILE,
        told.digest,
        told.text,
    )


def _section(section: Section, draw: bool) -> Markup:
    """A heading and its parts; what is an article of its own follows the others."""
    inside = [part for part in section.parts if not isinstance(part, Explained)]
    advice = next((part for part in inside if isinstance(part, Advice)), None)
    kind = "raison" if advice is None else _kind_of(advice)
    head = html("<h2>{}</h2>\n", section.title) if section.title else NOTHING
    body = html('<article class="{}" id="{}">\n{}{}</article>', kind, section.place, head, _parts(inside, draw))
    shown = [one for one in section.parts if isinstance(one, Explained)]
    articles = lines(compact(one.explanation, one.heading, one.anchor) for one in shown)
    return lines([body if inside else NOTHING, articles])


def _parts(parts: Sequence[Part], draw: bool) -> Markup:
    elements: list[Markup] = []
    for kind, group in groupby(parts, key=type):
        if kind is Table:
            elements += _tables([part for part in group if isinstance(part, Table)], bool(elements))
        else:
            elements += [_part(part, draw) for part in group]
    return lines(elements)


def _tables(tables: Sequence[Table], below: bool) -> Iterator[Markup]:
    """Tables that share a caption stand beside each other, where the page is wide enough, above it."""
    for number, (caption, shared) in enumerate(groupby(tables, key=lambda one: one.caption)):
        group = lines(_titled(one) for one in shared)
        gap = html(' style="margin-top:1.4rem"') if number or below else NOTHING
        said = html('\n<p class="caption">{}</p>', caption) if caption else NOTHING
        yield html('<div class="beside"{}>\n{}</div>{}', gap, group, said)


def _titled(one: Table) -> Markup:
    shades = one.shades or tuple((math.nan,) * len(cells) for _, cells in one.rows)
    links = one.links or ("",) * len(one.rows)
    body = [
        [_name(name, link), *(_cell(cell, level) for cell, level in zip(cells, levels, strict=True))]
        for (name, cells), levels, link in zip(one.rows, shades, links, strict=True)
    ]
    head = html("<h4>{}</h4>\n", one.title) if one.title else NOTHING
    return html("<div>{}{}</div>", head, grid(one.title or "Table", [breakable(name) for name in one.head], body))


def _name(name: str, link: str) -> Markup:
    return html('<a href="{}">{}</a>', quote(link, safe="/#"), breakable(name)) if link else breakable(name)


def _cell(cell: Cell, level: float) -> Markup:
    if cell.light is not None:
        small = html("<small>{}</small>", minus(cell.interval)) if cell.interval else NOTHING
        return html('<td class="verdict">{}{}</td>', lamp(cell.light, cell.mean), small)
    lead = html('<span class="p">{}</span> ', cell.lead) if cell.lead else NOTHING
    mean = marked(minus(cell.marked), cell.rank)
    below = [minus(line) for line in (cell.interval, cell.seeds) if line]
    tip = html(' title="{}"', cell.tip) if cell.tip else NOTHING
    if math.isnan(level):
        soft = html(' class="soft"') if cell.soft else NOTHING
        small = joined(html("<small>{}</small>", line) for line in below)
        return html("<td{}{}>{}{}{}</td>", soft, tip, lead, mean, small)
    # The soft colour of small print is unreadable on a shade.
    small = joined(html('<small style="color:inherit">{}</small>', line) for line in below)
    return html('<td class="shade" style="{}"{}>{}{}</td>', SIGNED.css(level), tip, mean, small)


def _part(part: Part, draw: bool) -> Markup:
    if isinstance(part, Text):
        words = html('<a href="{}">{}</a>', quote(part.link), part.words) if part.link else part.words
        return html("<p>{}</p>", words)
    if isinstance(part, Heading):
        return html("<h3>{}</h3>", part.words)
    if isinstance(part, Plots):
        return _plots(part) if draw else NOTHING
    if isinstance(part, ScoresTable):
        return _scores(part)
    if isinstance(part, Claims):
        return claims_grid(part.verdicts)
    if isinstance(part, Advice):
        return _advice(part)
    if isinstance(part, Answers):
        return html('<dl class="questions">\n{}</dl>', joined(map(_answer, part.entries)))
    if isinstance(part, Facts):
        return html("<dl>\n{}</dl>", definitions(part.entries))
    if isinstance(part, Reasons):
        rows = [[breakable(what), html('<td class="says">{}</td>', why)] for what, why in part.entries]
        return grid("Left out", ["what", "why"], rows) if rows else NOTHING
    return NOTHING


def _plots(part: Plots) -> Markup:
    """Plots beside each other; nothing without any."""
    if not part.figures:
        return NOTHING
    head = html("<h3>{}</h3>\n", part.heading) if part.heading else NOTHING
    said = html('\n<p class="caption">{}</p>', part.caption) if part.caption else NOTHING
    svgs = lines(html("<figure>{}</figure>", drawn(figure)) for figure in part.figures)
    return html('{}<div class="plots">\n{}</div>{}', head, svgs, said)


def _scores(part: ScoresTable) -> Markup:
    if part.table is None:
        return html("<p>No text is finished yet.</p>")
    note = html('<p class="caption">{}</p>', part.note) if part.note else NOTHING
    shown = lines([scores_table(part.table), note, settings_list(part.table)])
    return html("<details><summary>All metrics</summary>\n{}</details>", shown) if part.folded else shown


def lamp(light: str, words: str) -> Markup:
    """A light with its meaning in words."""
    return html('<span class="light {}">{}</span>', light, words)


def _kind_of(advice: Advice) -> str:
    return f"raison advice{ {'green': '', 'amber': ' careful'}.get(advice.light, ' none') }"


def _advice(part: Advice) -> Markup:
    words = html('<a href="{}">{}</a>', quote(part.link), part.words) if part.link else part.words
    return html("<p><strong>{}</strong></p>\n<p>{}</p>\n<p>{}</p>", words, part.reason, part.counts)


def _answer(one: Answer) -> Markup:
    light = html("{}<br>", lamp(one.light, one.words)) if one.light is not None else NOTHING
    return html("<dt>{}</dt><dd>{}{}</dd>\n", one.question, light, minus(one.says))
