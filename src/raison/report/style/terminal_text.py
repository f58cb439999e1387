"""Text for a terminal, and a terminal's output as plain text."""

import io
from collections.abc import Mapping

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from raison.core.results.printable import OVERRIDES

# Escape codes in a text must never reach the terminal; each is shown as its control picture instead.
_CONTROLS = {code: 0x2400 + code for code in range(32) if code not in (9, 10)} | {0x7F: 0x2421}
_CONTROLS |= dict.fromkeys(range(0x80, 0xA0), 0xFFFD) | dict.fromkeys(range(0xD800, 0xE000), 0xFFFD)
_CONTROLS |= dict.fromkeys(map(ord, OVERRIDES), 0xFFFD)


def plain(renderable: RenderableType) -> str:
    """What a terminal would show, without any escape code."""
    console = Console(file=io.StringIO(), color_system=None, force_terminal=False)
    with console.capture() as captured:
        console.print(renderable)
    return "\n".join(line.rstrip() for line in captured.get().splitlines()) + "\n"


def safe(text: str) -> str:
    return text.translate(_CONTROLS)


def facts_grid(facts: Mapping[str, object]) -> Table:
    """Names with their values, which may be styled."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", min_width=9)
    grid.add_column(overflow="fold")
    for label, fact in facts.items():
        grid.add_row(Text(safe(label)), fact if isinstance(fact, Text) else Text(safe(str(fact))))
    return grid
