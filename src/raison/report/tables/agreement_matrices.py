"""Matrices of the agreement of a run's methods on the same texts."""

import math
from collections.abc import Iterator, Sequence

from raison.core.results.scores import Summary
from raison.report.style import phrases
from raison.report.tables.records import Cell, Heading, Part, Table
from raison.runs.agreement import PairAgreement

_MEASURES = {"spearman": "Spearman", "top_k_overlap": "overlap of the top 20 %", "cosine": "cosine"}
_AGREEMENTS = "Means over texts; texts with an undefined measure are left out. Columns are numbered like the rows."


def agreements(pairs: Sequence[PairAgreement]) -> Iterator[Part]:
    """Matrices of the agreement of the methods' scores; none without pairs."""
    if not pairs:
        return
    names = list(dict.fromkeys(name for pair in pairs for name in (pair.first, pair.second)))
    yield Heading("How similar the methods' explanations are")
    for measure, title in _MEASURES.items():
        means: dict[tuple[str, str], Summary] = {}
        for pair in pairs:
            means[pair.first, pair.second] = means[pair.second, pair.first] = getattr(pair, measure)
        rows = tuple(
            (f"{number} {row}", tuple(_alike(means.get((row, column)), row, column) for column in names))
            for number, row in enumerate(names, 1)
        )
        shades = tuple(
            tuple(means[row, column].mean if (row, column) in means else math.nan for column in names) for row in names
        )
        yield Table(title, ("", *map(str, range(1, len(names) + 1))), rows, _AGREEMENTS, shades, aside=True)


def _alike(summary: Summary | None, row: str, column: str) -> Cell:
    if summary is None:
        return Cell("")
    tip = f"{row} and {column}: 95 % interval {summary.low:.2f} to {summary.high:.2f}"
    return Cell("n/a" if math.isnan(summary.mean) else phrases.number(summary.mean, 2), tip=tip)
