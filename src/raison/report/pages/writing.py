"""Writes a document: its page, further pages, its tables as Markdown and LaTeX; and shows it in a terminal."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from rich.console import Console, RenderableType
from rich.text import Text as RichText

from raison.jobs.disk import write_whole
from raison.report.figures import canvas
from raison.report.pages.document import LATEX, MARKDOWN, page
from raison.report.pages.papers import latex_of, markdown_of
from raison.report.style.terminal_text import safe
from raison.report.tables.records import Advice, Document, ScoresTable, Table
from raison.report.tables.terminal import TerminalTable
from raison.report.tables.terminal import table as scores_table
from raison.report.tables.writers import claim_text
from raison.runs.judging import Verdict

PAGE = "index.html"


def write(make: Callable[[Path], Document], target: Path, draw: bool = True) -> Path:
    """Write the report that `make` returns, given the folder for further pages; returns the page's path.

    Raises DataError if matplotlib is missing for plots, before anything is written.
    """
    if draw:
        canvas.require()
    document = make(target)
    write_whole(target / MARKDOWN, markdown_of(document))
    write_whole(target / LATEX, latex_of(document))
    for name, beside in document.pages.items():
        write_whole(target / name, page(beside, draw))
    write_whole(target / PAGE, page(document, draw))
    return target / PAGE


def shown(document: Document) -> Iterator[RenderableType]:
    """The terminal version: the main tables, and advice."""
    yield from (RichText(f"{safe(warning)}\n") for warning in document.warnings)
    for part in (part for section in document.shown if section.in_terminal for part in section.parts):
        if isinstance(part, Table) and not part.aside and part.rows:
            yield TerminalTable(part)
        elif isinstance(part, ScoresTable) and part.table is not None and not part.folded:
            yield scores_table(part.table)
        elif isinstance(part, Advice):
            yield RichText(f"{safe(part.words)} {safe(part.reason)}\n")


def show(document: Document, verdicts: Sequence[Verdict] = ()) -> None:
    """Print the terminal version, and claims with their results."""
    console = Console(highlight=False)
    for part in shown(document):
        console.print(part)
    for verdict in verdicts:
        console.print(RichText.assemble((verdict.finding, "bold"), f"  {safe(claim_text(verdict))}"))
