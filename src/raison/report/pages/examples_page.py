"""The page of a study's examples: a table per run, a row per text and method, the highest-scored units marked."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from raison.jobs.disk import write_whole
from raison.report.explanations.html import box
from raison.report.pages.examples import Example, Mark, beside, markdown, marks, reading
from raison.report.pages.texts import file_of
from raison.report.style import phrases
from raison.report.style.markup import NOTHING, Markup, document, html, joined, lines
from raison.report.tables.html import breakable
from raison.report.tables.results import escape_markdown
from raison.runs.run import Run

STYLES = ("explanation.css", "page.css", "study.css", "examples.css")
_HEAD = ("data set", "prediction", "model", "method", "text")
_NARROW = ("data set", "model")
"""Columns that a narrow screen leaves out, for the heading says the same."""


PAGE, PAPER = "examples.html", "examples.md"


@dataclass(frozen=True, slots=True)
class Examples:
    """A run with the examples of each of its texts; `texts` is the page that lists all of them."""

    name: str
    title: str
    run: Run
    examples: tuple[tuple[Example, ...], ...]
    texts: str


def write_examples(runs: Sequence[Examples], target: Path, title: str, origin: str, top: int) -> tuple[str, str]:
    """Write a standalone page of the runs that have examples, and the same as Markdown; the files' names."""
    title = f"Examples: {title}"
    body = html(
        '<h1>{}</h1>\n<nav class="steps" aria-label="Report"><a href="index.html">report</a></nav>\n{}\n'
        "<footer>{}</footer>",
        title,
        lines(_table(section, top) for section in runs),
        origin,
    )
    write_whole(target / PAGE, document(title, body, STYLES))
    parts = [f"# {escape_markdown(title)}"]
    for section in runs:
        table = markdown(section.examples, section.run.header["data"], top)
        parts += [f"## {escape_markdown(section.title)}", table, escape_markdown(_caption(section, top))]
    parts.append(escape_markdown(origin))
    write_whole(target / PAPER, "\n\n".join(part.rstrip("\n") for part in parts) + "\n")
    return PAGE, PAPER


def _caption(section: Examples, top: int) -> str:
    e = section.examples[0][0].explanation
    drawing = any(len(row["seeds"]) > 1 for row in section.run.header["rows"])
    seeds = " Methods that draw are shown under their first seed." if drawing else ""
    return f"{phrases.count(len(section.examples), 'text')}, explained {e.unit} by {e.unit}. {reading(e, top)}{seeds}"


def _table(section: Examples, top: int) -> Markup:
    return html(
        '<article class="raison" id="run-{}">\n<h2>{}</h2>\n'
        '<div class="scroll" tabindex="0" role="region" aria-label="{}"><table class="examples">\n'
        "<caption>{}</caption>\n<thead><tr>{}</tr></thead>\n{}</table></div></article>",
        section.name,
        section.title,
        section.title,
        _caption(section, top),
        joined(html('<th scope="col"{}>{}</th>', _narrow(name), name) for name in _HEAD),
        joined(_text(section, examples, top) for examples in section.examples),
    )


def _text(section: Examples, examples: Sequence[Example], top: int) -> Markup:
    """The rows of one text; what they share stands once beside them."""
    e, many = examples[0].explanation, len(examples)
    shared = html(
        '<td{} rowspan="{}">{}</td>{}<td{} rowspan="{}">{}</td>',
        _narrow("data set"),
        many,
        _path(section.run.header["data"]),
        _prediction(section, examples),
        _narrow("model"),
        many,
        _path(e.model),
    )
    rows = (
        html("<tr>{}{}</tr>\n", NOTHING if number else shared, _row(one, top)) for number, one in enumerate(examples)
    )
    return html("<tbody>\n{}</tbody>\n", joined(rows))


def _prediction(section: Examples, examples: Sequence[Example]) -> Markup:
    """What was predicted for the text, what was explained where that is something else, and the text's own page."""
    e, number = examples[0].explanation, examples[0].text
    told, aside = phrases.verdict(e), beside(e)
    return html(
        '<th scope="rowgroup" rowspan="{}">{}<b>{}</b> {}{}<small><a href="{}/{}">text {}</a></small></th>',
        len(examples),
        f"{told.lead} " if e.outputs == "number" else "",
        told.said,
        told.rest,
        html("<small>{}</small>", aside) if aside else NOTHING,
        quote(section.texts).rpartition("/")[0],
        file_of(number),
        number + 1,
    )


def _row(one: Example, top: int) -> Markup:
    return html(
        '<th scope="row">{}{}</th><td class="marked">{}</td>',
        breakable(one.method),
        html("<small>selected by {}</small>", breakable(one.selected_by)) if one.selected_by else NOTHING,
        joined(_marked(one, text) for text in marks(one.explanation, top)),
    )


def _marked(one: Example, text: Sequence[Mark]) -> Markup:
    spans = joined(_span(one, mark) if mark.part is None else box(mark.part, _span(one, mark)) for mark in text)
    return html('<div dir="auto" lang="" translate="no">{}</div>', spans)


def _span(one: Example, mark: Mark) -> str:
    if not mark.rank:
        return mark.text
    # Few screen readers say that something is bold; a group's name is read.
    tip = f"rank {mark.rank} of {len(one.explanation.scores)}"
    shown = html("<u>{}</u>", mark.text) if mark.rank == 1 else mark.text
    return html('<b role="group" title="{}" aria-label="{}: {}">{}</b>', tip, mark.text, tip, shown)


def _path(name: str) -> Markup:
    return html("{}", name).replace("/", html("/<wbr>"))


def _narrow(column: str) -> Markup:
    return html(' class="wide"') if column in _NARROW else NOTHING
