"""A document as a standalone page, which links only to files in its folder."""

from dataclasses import replace

from raison.jobs.folder import FILE
from raison.report.explanations.layout import layout
from raison.report.figures.plots import drawn
from raison.report.style.markup import document, rendered
from raison.report.tables.html import scored
from raison.report.tables.records import Advice, AnsweredQuestions, Document, HeadedExplanation, Heading, Plots, Section
from raison.runs.judging import RULE

STYLES = ("explanation.css", "page.css", "study.css")
MARKDOWN, LATEX = "tables.md", "tables.tex"
"""The files of tables in the page's folder."""


def page(content: Document, draw: bool) -> str:
    """The whole page; `draw` includes plots."""
    sections = [section if draw else _without_plots(section) for section in content.shown]
    parts = [part for section in sections for part in section.parts]
    explained = any(isinstance(part, HeadedExplanation) for part in parts)
    values = {
        "told": content,
        "sections": [section for section in sections if section.parts],
        "about": [" ".join(part.split()) for part in str(content.file.get("about", "")).split("\n\n")],
        "files": {"Tables": {"Markdown": MARKDOWN, "LaTeX": LATEX}, **content.links},
        "file": FILE,
        "rule": RULE,
        "explained": explained,
        "drawn": drawn,
        "layout": layout,
        "scored": scored,
    }
    lights = any(isinstance(part, Advice | AnsweredQuestions) for part in parts)
    styles = (*STYLES, "audit.css") if lights else STYLES
    return document(content.title, rendered("study.html", values), styles, ("page.js",) if explained else ())


def _without_plots(section: Section) -> Section:
    """A section without its plots, and without headings that only plots followed."""
    kept = tuple(part for part in section.parts if not isinstance(part, Plots))
    only_headings = all(isinstance(part, Heading) for part in kept)
    return replace(section, parts=() if only_headings else kept)
