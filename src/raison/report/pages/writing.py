"""Writes a document: its page, the pages beside it, its tables as Markdown and LaTeX; and shows it in a terminal."""

from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import RenderableType
from rich.text import Text as RichText

from raison.jobs.disk import write_whole
from raison.report.figures import canvas
from raison.report.pages.document import page
from raison.report.pages.papers import latex_of, markdown_of
from raison.report.tables.records import Advice, Cell, Document, ScoresTable, Table
from raison.report.tables.terminal import table as scores_table
from raison.runs.judging import Verdict

PAGE = "index.html"
MARKDOWN = "tables.md"
LATEX = "tables.tex"


def write(make: Callable[[Path], Document], target: Path, draw: bool = True) -> Path:
    """Write the report of what `make` tells, given the folder, where it may put further pages; the page's path.

    Raises DataError where matplotlib is missing for plots, before anything is written.
    """
    if draw:
        canvas.require()
    told = make(target)
    write_whole(target / MARKDOWN, markdown_of(told))
    write_whole(target / LATEX, latex_of(told))
    for name, beside in told.pages.items():
        write_whole(target / name, page(beside, draw))
    write_whole(target / PAGE, page(told, draw))
    return target / PAGE


def shown(told: Document) -> Iterator[RenderableType]:
    """What a terminal shows of it: the main tables, and advice."""
    yield from (RichText(f"{warning}\n") for warning in told.warnings)
    for part in (part for section in told.shown if section.told for part in section.parts):
        if isinstance(part, Table) and not part.aside and part.rows:
            yield RichText(f"{plain_table(part)}\n")
        elif isinstance(part, ScoresTable) and part.table is not None and not part.folded:
            yield scores_table(part.table)
        elif isinstance(part, Advice):
            yield RichText(f"{part.words} {part.reason}\n")


def text_of(told: Document) -> str:
    """The same without colours or comparisons' own tables."""
    return "\n".join(str(part) for part in shown(told) if isinstance(part, RichText))


def plain_table(table: Table) -> str:
    """A table in columns of blanks."""
    rows = [list(table.head), *([name, *map(_line, cells)] for name, cells in table.rows)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.head))]
    told = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([*([table.title] if table.title else []), *(f"  {row}" for row in told)])


def _line(cell: Cell) -> str:
    return " ".join(part for part in (cell.mean, cell.interval) if part)


def verdict_line(verdict: Verdict) -> RichText:
    """A claim with what was found, for a terminal."""
    gap = verdict.difference
    seen = f", difference {gap.mean:.3f} [{gap.low:.3f}, {gap.high:.3f}], n = {gap.count}" if gap.count else ""
    seen += ", not after Holm's correction" if verdict.survives is False else ""
    seen += f"; {verdict.note}" if verdict.note else ""
    return RichText.assemble((verdict.finding, "bold"), f"  {verdict.says} ({verdict.run}{seen})")
