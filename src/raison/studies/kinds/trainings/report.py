"""The report of a study of trainings: a page, and its tables as Markdown and LaTeX."""

from collections.abc import Callable
from pathlib import Path

from raison.jobs.store import write_whole
from raison.report import plots
from raison.report.tables import Cell, comments, escape_latex, escape_markdown
from raison.runs.judging import Verdict
from raison.studies.kinds.comparison.report import LATEX, MARKDOWN, PAGE
from raison.studies.kinds.trainings.claims import training_verdicts
from raison.studies.kinds.trainings.page import page, sections, warnings
from raison.studies.kinds.trainings.results import Trainings, read_trainings
from raison.studies.kinds.trainings.sections import Grid

_MARKDOWN = ("{}", "**{}**", "<u>{}</u>")
_LATEX = ("{}", r"\textbf{{{}}}", r"\underline{{{}}}")


def write(folder: Path, out: Path | None = None, draw: bool = True) -> Path:
    """Write the report of what a folder holds so far, by default into its folder `report`; the page's path.

    Raises DataError where the folder holds no study of trainings, or matplotlib is missing for plots.
    """
    study = read_trainings(folder)
    if draw:
        plots.require()
    target = folder / "report" if out is None else out
    write_whole(target / MARKDOWN, _markdown(study))
    write_whole(target / LATEX, _latex(study))
    write_whole(target / PAGE, page(study, draw))
    return target / PAGE


def text_tables(study: Trainings) -> str:
    """The tables of the metrics and of accuracy, for a terminal."""
    shown = [grid for title, grids in sections(study) if title in ("Criteria", "Accuracy", "Gains") for grid in grids]
    return "\n\n".join(plain_table(grid) for grid in shown) + "\n"


def plain_table(grid: Grid) -> str:
    lines = [list(grid.head), *([name, *(_line(cell) for cell in cells)] for name, cells in grid.rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(grid.head))]
    rows = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]
    return "\n".join([grid.title, *(f"  {row}" for row in rows)])


def _line(cell: Cell) -> str:
    return " ".join(part for part in (cell.mean, cell.interval) if part)


def _markdown(study: Trainings) -> str:
    parts = [f"# {escape_markdown(study.title)}"]
    about = study.file.get("about")
    parts += [escape_markdown(str(about))] if about else []
    parts += [f"**{escape_markdown(warning)}**" for warning in warnings(study)]
    verdicts = training_verdicts(study)
    if verdicts:
        parts += ["## Claims", "\n".join(claim_line(verdict) for verdict in verdicts)]
    for title, grids in sections(study):
        parts.append(f"## {escape_markdown(title)}")
        for grid in grids:
            parts += [f"### {escape_markdown(grid.title)}", markdown_table(grid), escape_markdown(grid.caption)]
    parts.append(escape_markdown(f"{study.title}, digest {study.header['digest']}."))
    return "\n\n".join(parts) + "\n"


def claim_line(verdict: Verdict) -> str:
    gap = verdict.difference
    seen = f", difference {gap.mean:.4f} [{gap.low:.4f}, {gap.high:.4f}], n = {gap.count}" if gap.count else ""
    seen += {None: "", True: ", also after Holm's correction", False: ", not after Holm's correction"}[verdict.survives]
    seen += f"; {verdict.note}" if verdict.note else ""
    return f"- **{verdict.finding}**: {escape_markdown(f'{verdict.says} ({verdict.run}{seen})')}"


def markdown_table(grid: Grid) -> str:
    lines = [
        [escape_markdown(name) for name in grid.head],
        ["---", *("---:" for _ in grid.head[1:])],
        *(
            [escape_markdown(name), *(_marked(cell, _MARKDOWN, escape_markdown) for cell in cells)]
            for name, cells in grid.rows
        ),
    ]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _marked(cell: Cell, marks: tuple[str, str, str], escaped: Callable[[str], str]) -> str:
    """A cell with its mark; what stands for the mean may be a name."""
    mean = marks[cell.rank].format(escaped(cell.mean))
    return " ".join(part for part in (mean, cell.interval, cell.seeds) if part)


def _latex_cell(text: str) -> str:
    """Text as LaTeX prints it; a dash that stands for no value stays."""
    return "–".join(map(escape_latex, text.split("–")))


def _latex(study: Trainings) -> str:
    lines = [study.title, *warnings(study), f"digest {study.header['digest']}", "The tables need the package booktabs."]
    return comments(lines) + "\n" + "\n".join(latex_table(grid) for _, grids in sections(study) for grid in grids)


def latex_table(grid: Grid) -> str:
    head = [_arrows(escape_latex(name)) for name in grid.head]
    body = [
        " & ".join([escape_latex(name), *(_marked(cell, _LATEX, _latex_cell).replace("-", "$-$") for cell in cells)])
        for name, cells in grid.rows
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
            rf"\caption{{{_arrows(escape_latex(f'{grid.title}. {grid.caption}'))}}}",
            r"\end{table}",
            "",
        ]
    )


def _arrows(text: str) -> str:
    return text.replace("↑", r"$\uparrow$").replace("↓", r"$\downarrow$")
