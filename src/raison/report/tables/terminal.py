"""Results of methods for the terminal."""

from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from raison.report.style import phrases
from raison.report.style.terminal_text import plain, safe
from raison.report.tables.records import Cell
from raison.report.tables.results import Results, ScoresColumn, by_target, caption, columns, rows_of, warnings

SHOWN = 10
"""Labels of a multi-label model with a table of their own."""


@dataclass(frozen=True, slots=True)
class ResultsTable:
    """Methods by metrics. Columns that do not fit beside each other go into further tables below."""

    results: Results

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        methods = [safe(row.method) for row in rows_of(self.results)]
        room = options.max_width - max(map(cell_len, ["method", *methods])) - 4
        for group in _groups(columns(self.results), room):
            yield _grid(methods, group)
        yield Text(safe(caption(self.results)) + " Best in bold with *, second underlined.", "dim")
        for line in warnings(self.results):
            yield Text(safe(line), "bold yellow")
        labels = by_target(self.results)
        for name in list(labels)[:SHOWN]:
            yield Text(safe(f"\n{name}"), "bold")
            for group in _groups(columns(labels[name]), room):
                yield _grid(methods, group)
        if len(labels) > SHOWN:
            yield Text(f"{phrases.count(len(labels) - SHOWN, 'further label')} in by_target", "dim")


def table(results: Results) -> RenderableType:
    """Scores of one or more methods, or a comparison."""
    return ResultsTable(results)


def results_plain(results: Results) -> str:
    """The table without any escape code."""
    return plain(table(results))


def _groups(shown: tuple[ScoresColumn, ...], room: int) -> list[list[ScoresColumn]]:
    groups: list[list[ScoresColumn]] = [[]]
    left = room
    for column in shown:
        width = 2 + max(
            len(column.name) + 2, *(max(len(cell.marked) + 1, len(cell.interval)) for cell in column.cells), 0
        )
        if groups[-1] and width > left:
            groups.append([])
            left = room
        groups[-1].append(column)
        left -= width
    return groups


def _grid(methods: list[str], shown: list[ScoresColumn]) -> Table:
    grid = Table(box=SIMPLE_HEAD, pad_edge=False)
    grid.add_column("method", overflow="fold")
    for column in shown:
        grid.add_column(Text(f"{safe(column.name)} {column.arrow}".strip()), justify="right", no_wrap=True)
    for number, method in enumerate(methods):
        grid.add_row(Text(method), *(_cell(column.cells[number]) for column in shown))
    return grid


def _cell(cell: Cell) -> Text:
    mean = Text(f"{cell.marked}{'*' if cell.rank == 1 else ''}", {1: "bold", 2: "underline"}.get(cell.rank, ""))
    return Text.assemble(mean, "\n", (cell.interval, "dim")) if cell.interval else mean
