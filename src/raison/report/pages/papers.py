"""A document as Markdown and as LaTeX."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from raison.report.tables.records import (
    Advice,
    Answers,
    Cell,
    Claims,
    Document,
    Part,
    Reasons,
    ScoresTable,
    Section,
    Table,
    Text,
)
from raison.report.tables.results import comments, escape_latex, escape_markdown, latex, markdown
from raison.runs.judging import Verdict


@dataclass(frozen=True, slots=True)
class _Marks:
    """The formats of a cell without rank, as the best and as the second, and the escaping of its text."""

    ranks: tuple[str, str, str]
    escaped: Callable[[str], str]

    def cell(self, cell: Cell) -> str:
        mean = self.ranks[cell.rank].format(self.escaped(cell.marked))
        return " ".join(part for part in (cell.lead, mean, cell.interval, cell.seeds) if part)


def _latex_text(text: str) -> str:
    """Text as LaTeX prints it; a dash that stands for no value stays."""
    return "–".join(map(escape_latex, text.split("–")))


_MARKDOWN = _Marks(("{}", "**{}**", "<u>{}</u>"), escape_markdown)
_LATEX = _Marks(("{}", r"\textbf{{{}}}", r"\underline{{{}}}"), _latex_text)


def markdown_of(document: Document) -> str:
    """The whole document but its figures, and the pages beside it where they hold answers."""
    parts = [f"# {escape_markdown(document.title)}"]
    about = document.file.get("about")
    parts += [escape_markdown(str(about))] if about else []
    parts += [f"**{escape_markdown(warning)}**" for warning in document.warnings]
    beside = [Section(page.title, section.parts) for page in document.pages.values() for section in page.shown]
    for section in (*document.shown, *beside):
        told = [line for part in section.parts for line in _told(part)]
        parts += [f"## {escape_markdown(section.title)}"] if told and section.title else []
        parts += told
    parts += [escape_markdown(f"{document.title}, digest {document.digest}.")] if document.digest else []
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def latex_of(document: Document) -> str:
    """The tables; warnings and where the numbers come from as comments."""
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
    elif isinstance(part, Answers) and not part.aside:
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
    """A claim with what was found, as an item of a list."""
    gap = verdict.difference
    seen = f", difference {gap.mean:.4f} [{gap.low:.4f}, {gap.high:.4f}], n = {gap.count}" if gap.count else ""
    seen += {None: "", True: ", also after Holm's correction", False: ", not after Holm's correction"}[verdict.survives]
    seen += f"; {verdict.note}" if verdict.note else ""
    return f"- **{verdict.finding}**: {escape_markdown(f'{verdict.says} ({verdict.run}{seen})')}"


def markdown_table(table: Table) -> str:
    """A table in pipes."""
    lines = [
        [escape_markdown(name) for name in table.head],
        ["---", *("---:" for _ in table.head[1:])],
        *([escape_markdown(name), *map(_MARKDOWN.cell, cells)] for name, cells in table.rows),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def latex_table(table: Table) -> str:
    """A table that needs the package booktabs."""
    head = [_arrows(escape_latex(name)) for name in table.head]
    caption = ". ".join(part for part in (table.title, table.caption) if part)
    body = [
        " & ".join([escape_latex(name), *(_LATEX.cell(cell).replace("-", "$-$") for cell in cells)])
        for name, cells in table.rows
    ]
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering",
            rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}",
            r"\toprule",
            " & ".join(head) + r" \\",
            r"\midrule",
            *(f"{line} \\\\" for line in body),
            r"\bottomrule",
            r"\end{tabular}",
            rf"\caption{{{_arrows(escape_latex(caption))}}}",
            r"\end{table}",
            "",
        ]
    )


def _arrows(text: str) -> str:
    return text.replace("↑", r"$\uparrow$").replace("↓", r"$\downarrow$")
