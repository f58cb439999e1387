"""Agreement of a run's methods on the same texts: agreement.json, or agreement.json.gz, in the run's folder."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TypedDict

import numpy as np

from raison.core.errors import InputError
from raison.core.results.explanation import Explanation
from raison.core.results.scores import Summary
from raison.jobs.store import read_record, unreadable, write_record
from raison.numerics.measures.agreement import AGREEMENTS
from raison.numerics.statistics.bootstrap import mean_interval
from raison.runs.run import Run

FILE = "agreement.json"
MEASURES = ("spearman", "top_k_overlap", "cosine")
"""Measures of numerics.measures.agreement with default settings: the overlap is of the top 20 % of the units."""

DECIMALS = 6


class AgreementPair(TypedDict):
    """Two rows' names and the texts' values of each measure, as the file has them."""

    first: str
    second: str
    spearman: list[float | None]
    top_k_overlap: list[float | None]
    cosine: list[float | None]


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """Agreement of two rows of a run: mean over texts of each measure, with its 95 % interval.

    The mean is NaN, over zero texts, if there was nothing to compare. `cosines` has the values of the texts that have
    one.
    """

    first: str
    second: str
    spearman: Summary
    top_k_overlap: Summary
    cosine: Summary
    cosines: tuple[float, ...] = ()


def agreement(explanations: Mapping[str, Sequence[Explanation]]) -> list[AgreementPair]:
    """Every pair of rows, text by text, as plain JSON values; null for an undefined measure.

    `explanations` has each row's explanations of the same texts in the same order. Raises InputError if the texts
    differ.
    """
    scores = {row: [np.array(e.scores, dtype=np.float64) for e in of_row] for row, of_row in explanations.items()}
    pairs: list[AgreementPair] = []
    for first, second in combinations(scores, 2):
        if [len(one) for one in scores[first]] != [len(one) for one in scores[second]]:
            raise InputError(f"{first} and {second} have different units: compare them on the same texts.")
        both = list(zip(scores[first], scores[second], strict=True))
        spearman, overlap, cosine = ([_rounded(AGREEMENTS[name](a, b)) for a, b in both] for name in MEASURES)
        pairs.append(
            {"first": first, "second": second, "spearman": spearman, "top_k_overlap": overlap, "cosine": cosine}
        )
    return pairs


def rows_of(run: Run) -> dict[str, Sequence[Explanation]]:
    """The explanations of the rows as the methods give them, under their first seed; selected maps are excluded,
    because they are not the method's own.

    Rows without the explanations of all texts are left out.
    """
    rows = [row.keys[0] for row in run.header.rows if row.selected_by is None]
    return {row: run.explanations(row, seed) for row, seed in rows if run.explains(row, seed)}


def agreement_of(run: Run) -> tuple[PairAgreement, ...]:
    """Means over the texts of a run; () if it has no explanations."""
    return tuple(_means(pair) for pair in agreement(rows_of(run)))


def read_agreement(folder: Path) -> tuple[PairAgreement, ...]:
    """Means from a run's folder; () if nothing was written. Raises DataError if it cannot be read."""
    try:
        return tuple(_means(pair) for pair in pairs_in(folder))
    except (KeyError, TypeError, ValueError) as error:
        raise unreadable(folder / FILE, repr(error)) from None


def pairs_in(folder: Path) -> list[AgreementPair]:
    """The pairs in a run's folder, text by text; [] if nothing was written. Raises DataError."""
    record = read_record(folder / FILE)
    pairs = [] if record is None else record.get("pairs")
    if not isinstance(pairs, list):
        raise unreadable(folder / FILE, "it has no pairs")
    return pairs


def add_pairs(folder: Path, pairs: Iterable[AgreementPair]) -> None:
    """Write these pairs to a run's folder and replace those of the same rows. Raises DataError."""
    known = {frozenset((pair["first"], pair["second"])): pair for pair in (*pairs_in(folder), *pairs)}
    write_record(folder / FILE, {"pairs": [*known.values()]})


def _means(pair: AgreementPair) -> PairAgreement:
    return PairAgreement(
        pair["first"],
        pair["second"],
        _summary(pair["spearman"]),
        _summary(pair["top_k_overlap"]),
        _summary(pair["cosine"]),
        cosines=tuple(value for value in pair["cosine"] if value is not None),
    )


def _summary(values: Sequence[float | None]) -> Summary:
    known = [value for value in values if value is not None]
    return Summary(*mean_interval(known), len(known))


def _rounded(value: float) -> float | None:
    return None if math.isnan(value) else round(value, DECIMALS)
