"""The page of a study's examples: a table per run, a row per text and method, the highest-scored units marked."""

from collections.abc import Sequence
from urllib.parse import quote

from raison.report import phrases
from raison.report.examples import Example, Mark, beside, markdown, marks, reading
from raison.report.html import box
from raison.report.html_tables import breakable
from raison.report.markup import document, escape
from raison.report.study_section import Section
from raison.report.tables import escape_markdown
from raison.report.texts import file_of
from raison.runs.study import StudyRuns

STYLES = ("explanation.css", "page.css", "study.css", "examples.css")
_HEAD = ("data set", "prediction", "model", "method", "text")
_NARROW = ("data set", "model")
"""Columns that a narrow screen leaves out, for the heading says the same."""


def examples_page(study: StudyRuns, sections: Sequence[Section], top: int) -> str:
    """The standalone page of the runs that have examples, of which there is at least one."""
    title = f"Examples: {study.title}"
    tables = "\n".join(_table(section, top) for section in sections if section.examples)
    body = (
        f'<h1>{escape(title)}</h1>\n<nav class="steps" aria-label="Report"><a href="index.html">report</a></nav>\n'
        f"{tables}\n<footer>{escape(_origin(study, sections))}</footer>"
    )
    return document(title, body, STYLES)


def examples_markdown(study: StudyRuns, sections: Sequence[Section], top: int) -> str:
    """The same as Markdown."""
    parts = [f"# {escape_markdown(f'Examples: {study.title}')}"]
    for section in sections:
        if section.examples:
            table = markdown(section.examples, section.run.header["data"], top)
            parts += [f"## {escape_markdown(section.title)}", table, escape_markdown(_caption(section, top))]
    parts.append(escape_markdown(_origin(study, sections)))
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _origin(study: StudyRuns, sections: Sequence[Section]) -> str:
    versions = ", ".join(sorted({section.run.header["raison"] for section in sections}))
    return f"{study.title}, digest {study.digest}, raison {versions}."


def _caption(section: Section, top: int) -> str:
    e = section.examples[0][0].explanation
    drawing = any(len(row["seeds"]) > 1 for row in section.run.header["rows"])
    seeds = " Methods that draw are shown under their first seed." if drawing else ""
    return f"{phrases.count(len(section.examples), 'text')}, explained {e.unit} by {e.unit}. {reading(e, top)}{seeds}"


def _table(section: Section, top: int) -> str:
    columns = "".join(f'<th scope="col"{_narrow(name)}>{name}</th>' for name in _HEAD)
    groups = "".join(_text(section, examples, top) for examples in section.examples)
    return (
        f'<article class="raison" id="run-{escape(section.name)}">\n<h2>{escape(section.title)}</h2>\n'
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(section.title)}">'
        f'<table class="examples">\n<caption>{escape(_caption(section, top))}</caption>\n'
        f"<thead><tr>{columns}</tr></thead>\n{groups}</table></div></article>"
    )


def _text(section: Section, examples: Sequence[Example], top: int) -> str:
    """The rows of one text; what they share stands once beside them."""
    e, many = examples[0].explanation, len(examples)
    told = phrases.verdict(e)
    lead = f"{escape(told.lead)} " if e.outputs == "number" else ""
    aside = beside(e)
    link = f"{quote(section.texts or '').rpartition('/')[0]}/{file_of(examples[0].text)}"
    prediction = (
        f'<th scope="rowgroup" rowspan="{many}">{lead}<b>{escape(told.said)}</b> {escape(told.rest)}'
        f"{f'<small>{escape(aside)}</small>' if aside else ''}"
        f'<small><a href="{link}">text {examples[0].text + 1}</a></small></th>'
    )
    shared = (
        f'<td{_narrow("data set")} rowspan="{many}">{_path(section.run.header["data"])}</td>{prediction}'
        f'<td{_narrow("model")} rowspan="{many}">{_path(e.model)}</td>'
    )
    rows = "".join(f"<tr>{'' if number else shared}{_row(one, top)}</tr>\n" for number, one in enumerate(examples))
    return f"<tbody>\n{rows}</tbody>\n"


def _row(one: Example, top: int) -> str:
    chooser = f"<small>selected by {breakable(one.selected_by)}</small>" if one.selected_by else ""
    texts = "".join(_marked(one, text) for text in marks(one.explanation, top))
    return f'<th scope="row">{breakable(one.method)}{chooser}</th><td class="marked">{texts}</td>'


def _marked(one: Example, text: Sequence[Mark]) -> str:
    spans = "".join(_span(one, mark) if mark.part is None else box(mark.part, _span(one, mark)) for mark in text)
    return f'<div dir="auto" lang="" translate="no">{spans}</div>'


def _span(one: Example, mark: Mark) -> str:
    if not mark.rank:
        return escape(mark.text)
    shown = f"<u>{escape(mark.text)}</u>" if mark.rank == 1 else escape(mark.text)
    tip = f"rank {mark.rank} of {len(one.explanation.scores)}"
    # Few screen readers say that something is bold; a group's name is read.
    return f'<b role="group" title="{tip}" aria-label="{escape(mark.text)}: {tip}">{shown}</b>'


def _path(name: str) -> str:
    return escape(name).replace("/", "/<wbr>")


def _narrow(column: str) -> str:
    return ' class="wide"' if column in _NARROW else ""
