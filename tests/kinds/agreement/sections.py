"""What a study of agreement tells: a table of pairs, and what it claims."""

from pathlib import Path

from raison.studies.kinds.agreement.results import Agreements  # type: ignore[import-not-found]

from raison.core.results.scores import Summary
from raison.numerics.statistics.bootstrap import mean_interval
from raison.report.style import phrases
from raison.report.tables.records import Cell, Document, Section, Table
from raison.studies.claims import claims_section


def sections(results: Agreements, _target: Path | None = None) -> Document:
    """The study; it has no pages of single texts."""
    rows = []
    for (one, other), values in results.values.items():
        found = Summary(*mean_interval([values[text] for text in sorted(values)]), len(values))
        cell = Cell(phrases.number(found.mean, 2), phrases.interval(found.low, found.high, 2)) if values else Cell("–")
        rows.append((f"{one} & {other}", (cell,)))
    table = Table("Agreement", ("methods", "rank correlation"), tuple(rows), "Mean over texts with its 95 % interval.")
    return Document((Section("Agreement", (table,)), claims_section(results)))
