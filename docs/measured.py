"""Numbers of pages that stand in a benchmark's table, benchmarks/results/NAME.md."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from marks import StaleError

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"


def measured(asked: Sequence[str]) -> str:
    """NAME; ROW; COLUMN: the cell as it stands there; of several rows the smallest and the largest.

    ROW is a pattern of the row's cells, joined by commas. Raises StaleError where there is no such cell.
    """
    name, pattern, column = asked
    path = RESULTS / f"{name}.md"
    if not path.exists():
        raise StaleError(f"no benchmark has a table '{name}'")
    header, _, *rows = [_cells(line) for line in path.read_text(encoding="utf-8").splitlines() if line[:1] == "|"]
    if column not in header:
        raise StaleError(f"{name} has no column '{column}': {', '.join(header)}")
    found = [row[header.index(column)] for row in rows if fnmatchcase(", ".join(row), pattern)]
    if not found:
        raise StaleError(f"{name} has no row '{pattern}'")
    return found[0] if len(found) == 1 else " to ".join((min(found, key=float), max(found, key=float)))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
