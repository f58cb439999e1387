"""The one progress bar of long work."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

Advance = Callable[[int], None]


@contextmanager
def progress_bar(title: str, total: int, show: bool | Advance) -> Iterator[Advance]:
    """Yields a function that is told how many more are done. Draws on stderr, and only on a terminal.

    `show` may be a function of the caller's, which then hears of the progress instead.
    """
    if callable(show):
        yield show
        return
    console = Console(stderr=True)
    if not show or not console.is_terminal or total < 2:
        yield lambda _count: None
        return
    columns = (
        TextColumn("[progress.description]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda count: bar.advance(task, count)
