"""Tables for the terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

from raison.report.style import phrases
from raison.report.style.terminal_text import plain, safe
from raison.report.tables.records import Cell, Table
from raison.report.tables.results import Results, by_target, caption, results_table, warnings

SHOWN = 10
"""Maximum number of labels of a multi-label model with their own tables."""


@dataclass(frozen=True, slots=True)
class TerminalTable:
    """A table under its title. Columns that do not fit go into further tables below."""

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.table.title:
            yield Text(safe(self.table.title), "bold")
        names = [self.table.head[0], *(name for name, _ in self.table.rows)]
        room = options.max_width - max(map(cell_len, map(safe, names))) - 4
        yield from (self._grid(group) for group in self._groups(room))

    def _groups(self, room: int) -> Iterator[Sequence[int]]:
        """Numbers of the columns that fit side by side."""
        group: list[int] = []
        left = room
        for number, name in enumerate(self.table.head[1:]):
            cells = [cells[number] for _, cells in self.table.rows]
            width = 2 + max(cell_len(name), *(max(cell_len(cell.marked) + 1, len(cell.interval)) for cell in cells), 0)
            if group and width > left:
                yield group
                group, left = [], room
            group.append(number)
            left -= width
        yield group

    def _grid(self, group: Sequence[int]) -> RichTable:
        first, *others = self.table.head
        grid = RichTable(box=SIMPLE_HEAD, pad_edge=False)
        grid.add_column(Text(safe(first)), overflow="fold")
        for number in group:
            grid.add_column(Text(safe(others[number])), justify="right", no_wrap=True)
        for name, cells in self.table.rows:
            grid.add_row(Text(safe(name)), *(_cell(cells[number]) for number in group))
        return grid


def table(results: Results) -> RenderableType:
    """Scores of one or more methods, or a comparison, and the same for each label if several were explained."""
    labels = by_target(results)
    shown: list[RenderableType] = [
        TerminalTable(results_table(results)),
        Text(safe(caption(results)) + " Best in bold with *, second underlined.", "dim"),
        *(Text(safe(line), "bold yellow") for line in warnings(results)),
    ]
    for name in list(labels)[:SHOWN]:
        shown += [Text(safe(f"\n{name}"), "bold"), TerminalTable(results_table(labels[name]))]
    if len(labels) > SHOWN:
        shown.append(Text(f"{phrases.count(len(labels) - SHOWN, 'further label')} in by_target", "dim"))
    return Group(*shown)


def results_plain(results: Results) -> str:
    """The table without any escape code."""
    return plain(table(results))


def _cell(cell: Cell) -> Text:
    style = {1: "bold", 2: "underline"}.get(cell.rank, "dim" if cell.soft else "")
    mean = Text(safe(f"{cell.marked}{'*' if cell.rank == 1 else ''}"), style)
    return Text.assemble(mean, "\n", (safe(cell.interval), "dim")) if cell.interval else mean
