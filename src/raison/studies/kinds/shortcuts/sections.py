"""The report of a study of shortcuts: how often something was found, and the claims."""

from pathlib import Path

import numpy as np

from raison.numerics.statistics.successes import share_interval
from raison.report.style import phrases
from raison.report.tables.records import NOTHING_THERE, Cell, Document, Section, Table
from raison.studies.claims import claims_section
from raison.studies.kinds.shortcuts.results import RANDOM, Findings, Found

CAPTION = (
    "The share of models in which the planted word is found, with Wilson's 95 % interval; for the random row, the "
    "share of draws in which any word is found. Further columns: the word's mean rank among all found words, its "
    "largest corrected p, the mean number of found words, and the mean accuracy on held-out rows."
)


def sections(results: Findings, _target: Path | None = None) -> Document:
    """The study; it has no pages of single texts."""
    rows = tuple((row, _cells(row, list(draws.values()))) for row, draws in results.found.items() if draws)
    table = Table("Words found", ("row", "found", "mean rank", "corrected p", "words", "accuracy"), rows, CAPTION)
    return Document((Section("Words found", (table,)), claims_section(results)))


def _cells(row: str, draws: list[Found]) -> tuple[Cell, ...]:
    hits = [one for one in draws if one.found]
    low, high = share_interval(len(hits), len(draws))
    cells = [Cell(f"{len(hits)} of {len(draws)}", phrases.interval(low, high, 3))]
    if hits and row != RANDOM:
        cells += [_mean([one.rank for one in hits], 1), Cell(f"{max(one.p for one in hits):.1g}")]
    else:
        cells += [NOTHING_THERE, NOTHING_THERE]
    cells.append(_mean([one.words for one in draws], 2 if row == RANDOM else 1))
    return (*cells, _mean([one.accuracy for one in draws if one.accuracy is not None], 3))


def _mean(values: list[int] | list[float], places: int) -> Cell:
    return Cell(phrases.number(float(np.mean(values)), places)) if values else NOTHING_THERE
