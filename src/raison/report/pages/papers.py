"""A document as Markdown and as LaTeX."""

from collections.abc import Iterator

from raison.report.tables.records import (
    Advice,
    AnsweredQuestions,
    Claims,
    Document,
    Part,
    Reasons,
    ScoresTable,
    Section,
    Table,
    Text,
)
from raison.report.tables.results import latex, markdown
from raison.report.tables.writers import claim_text, comments, escape_markdown, latex_table, markdown_table
from raison.runs.judging import Verdict


def markdown_of(document: Document) -> str:
    """The whole document without its figures, and its further pages if they hold answers."""
    parts = [f"# {escape_markdown(document.title)}"]
    about = document.file.get("about")
    parts += [escape_markdown(str(about))] if about else []
    parts += [f"**{escape_markdown(warning)}**" for warning in document.warnings]
    beside = [Section(page.title, section.parts) for page in document.pages.values() for section in page.shown]
    for section in (*document.shown, *beside):
        lines = [line for part in section.parts for line in _told(part)]
        parts += [f"## {escape_markdown(section.title)}"] if lines and section.title else []
        parts += lines
    parts += [escape_markdown(f"{document.title}, digest {document.digest}.")] if document.digest else []
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def latex_of(document: Document) -> str:
    """The tables; warnings and the origin of the numbers as comments."""
    origin = [f"digest {document.digest}"] if document.digest else []
    lines = [document.title, *document.warnings, *origin, "The tables need the package booktabs."]
    tables = []
    for part in (part for section in document.shown for part in section.parts):
        if isinstance(part, Table) and not part.aside and part.rows:
            tables.append(latex_table(part))
        elif isinstance(part, ScoresTable) and part.table is not None:
            tables.append(latex(part.table, part.note))
    return comments(lines) + "\n" + "\n".join(tables)


def _told(part: Part) -> Iterator[str]:
    if isinstance(part, Text) and not part.aside:
        yield escape_markdown(part.words)
    elif isinstance(part, Advice):
        yield f"**{escape_markdown(part.words)}** {escape_markdown(part.reason)}"
    elif isinstance(part, AnsweredQuestions) and not part.aside:
        yield "\n".join(f"- {one.question} {escape_markdown(one.says)}" for one in part.entries)
    elif isinstance(part, Claims) and part.verdicts:
        yield "\n".join(map(claim_line, part.verdicts))
    elif isinstance(part, Reasons) and part.entries:
        yield "\n".join(f"- {escape_markdown(f'{what}: {why}')}" for what, why in part.entries)
    elif isinstance(part, ScoresTable):
        yield "No text is finished yet." if part.table is None else markdown(part.table, part.note)
    elif isinstance(part, Table) and not part.aside and part.rows:
        title = [f"### {escape_markdown(part.title)}"] if part.title else []
        yield from (*title, markdown_table(part), escape_markdown(part.caption))


def claim_line(verdict: Verdict) -> str:
    """A claim with its result, as an item of a list."""
    return f"- **{verdict.finding}**: {escape_markdown(claim_text(verdict))}"
