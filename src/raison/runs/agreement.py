"""Agreement of a run's methods on the same texts: agreement.json, or agreement.json.gz, in the run's folder.

While a run is not finished, the file also has the parts that were copied from other runs: their pairs on some texts.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import numpy as np
from jaxtyping import Float

from raison.core.errors import InputError
from raison.core.results.explanation import Explanation
from raison.core.results.scores import Summary
from raison.jobs.store import read_record, unreadable, write_record
from raison.numerics.measures.agreement import centred_ranks, cosine, top_k_overlap
from raison.numerics.statistics.bootstrap import mean_interval
from raison.runs.run import Run

FILE = "agreement.json"
PARTS = "parts"
MEASURES = ("spearman", "top_k_overlap", "cosine")
"""Measures of numerics.measures.agreement with default settings: the overlap is of the top 20 % of the units."""
_Values = tuple[float | None, ...]
"""Each measure of two explanations of a text."""

DECIMALS = 6


class AgreementPair(TypedDict):
    """Two rows' names and the texts' values of each measure, as the file has them."""

    first: str
    second: str
    spearman: list[float | None]
    top_k_overlap: list[float | None]
    cosine: list[float | None]


class AgreementPart(TypedDict):
    """The pairs of another run, and the number here of each of its texts."""

    texts: list[int]
    pairs: list[AgreementPair]


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
    scores = {row: dict(enumerate(map(_scores, of_row))) for row, of_row in explanations.items()}
    pairs = []
    for first, second in combinations(scores, 2):
        if [len(one.values) for one in scores[first].values()] != [len(one.values) for one in scores[second].values()]:
            raise InputError(f"{first} and {second} have different units: compare them on the same texts.")
        pairs.append(_pair(first, second, [_compared(a, scores[second][text]) for text, a in scores[first].items()]))
    return pairs


def write_agreement(run: Run) -> None:
    """Compute the agreement of a finished run and write it to the run's folder. Raises DataError.

    A text without explanations has the values of a part that was copied. A pair that lacks a text is left out. What the
    folder has is not computed again.
    """
    assert run.folder is not None, "agreement is written to a run's folder"
    there, parts = _read(run.folder)
    done = {_rows(pair) for pair in there if len(pair["cosine"]) == run.header.texts}
    seeds = dict(_own_rows(run))
    missing = [both for both in combinations(seeds, 2) if frozenset(both) not in done]
    rows = dict.fromkeys(row for both in missing for row in both)
    scores = {row: {text: _scores(e) for text, e in run.explained(row, seeds[row])} for row in rows}
    copied = _copied(parts)
    pairs = []
    for first, second in missing:
        known, one, other = copied.get(frozenset((first, second)), {}), scores[first], scores[second]
        values = [
            _compared(one[text], other[text]) if text in one and text in other else known.get(text)
            for text in range(run.header.texts)
        ]
        whole = [value for value in values if value is not None]
        if len(whole) == len(values):
            pairs.append(_pair(first, second, whole))
    _write(run.folder, [*there, *pairs], [])


def _own_rows(run: Run) -> list[tuple[str, int]]:
    """The rows as the methods give them, with their first seed; a selected map is not the method's own."""
    return [row.keys[0] for row in run.header.rows if row.selected_by is None]


class _Scores(NamedTuple):
    """The scores of an explanation, and their ranks: each is ranked once, not with every row it is compared with."""

    values: Float[np.ndarray, " units"]
    ranks: Float[np.ndarray, " units"]


def _scores(e: Explanation) -> _Scores:
    values = np.array(e.scores, dtype=np.float64)
    return _Scores(values, centred_ranks(values))


def _compared(one: _Scores, other: _Scores) -> _Values:
    measured = (
        cosine(one.ranks, other.ranks),
        top_k_overlap(one.values, other.values),
        cosine(one.values, other.values),
    )
    return tuple(map(_rounded, measured))


def _pair(first: str, second: str, values: Sequence[_Values]) -> AgreementPair:
    spearman, overlap, cosine = ([value[place] for value in values] for place in range(len(MEASURES)))
    return {"first": first, "second": second, "spearman": spearman, "top_k_overlap": overlap, "cosine": cosine}


def _copied(parts: Sequence[AgreementPart]) -> dict[frozenset[str], dict[int, _Values]]:
    """The values of each pair by text."""
    copied: dict[frozenset[str], dict[int, _Values]] = {}
    for part in parts:
        for pair in part["pairs"]:
            values = zip(pair["spearman"], pair["top_k_overlap"], pair["cosine"], strict=True)
            copied.setdefault(_rows(pair), {}).update(zip(part["texts"], values, strict=True))
    return copied


def agreement_of(run: Run) -> tuple[PairAgreement, ...]:
    """Means over the texts of a run; () if it has no explanations. Rows without those of all texts are left out."""
    rows = {row: run.explanations(row, seed) for row, seed in _own_rows(run) if run.explains(row, seed)}
    return tuple(_means(pair) for pair in agreement(rows))


def read_agreement(folder: Path) -> tuple[PairAgreement, ...]:
    """Means from a run's folder; () if nothing was written. Raises DataError if it cannot be read."""
    return tuple(_means(pair) for pair in pairs_in(folder))


def pairs_in(folder: Path) -> list[AgreementPair]:
    """The pairs in a run's folder, text by text; [] if nothing was written. Raises DataError."""
    return _read(folder)[0]


def add_part(folder: Path, texts: Sequence[int], pairs: Iterable[AgreementPair]) -> None:
    """Keep pairs of another run, whose texts have these numbers, until the run is finished. Raises DataError.

    Pairs that the folder has for all texts are not kept.
    """
    there, parts = _read(folder)
    done = set(map(_rows, there))
    part: AgreementPart = {"texts": list(texts), "pairs": [pair for pair in pairs if _rows(pair) not in done]}
    if part["pairs"] and part not in parts:
        _write(folder, there, [*parts, part])


def _read(folder: Path) -> tuple[list[AgreementPair], list[AgreementPart]]:
    record = read_record(folder / FILE)
    if record is None:
        return [], []
    try:
        pairs = [_read_pair(pair) for pair in record["pairs"]]
        return pairs, [_read_part(part) for part in record.get(PARTS, [])]
    except (KeyError, TypeError, ValueError) as error:
        raise unreadable(folder / FILE, repr(error)) from None


def _read_part(part: Any) -> AgreementPart:
    texts, pairs = part["texts"], [_read_pair(pair) for pair in part["pairs"]]
    if not all(type(text) is int for text in texts):
        raise TypeError("the numbers of texts are not whole numbers")
    if any(len(pair["cosine"]) != len(texts) for pair in pairs):
        raise ValueError("a part does not have a value for each of its texts")
    return {"texts": texts, "pairs": pairs}


def _read_pair(pair: Any) -> AgreementPair:
    lists = [pair[name] for name in MEASURES]
    if not isinstance(pair["first"], str) or not isinstance(pair["second"], str):
        raise TypeError("a pair does not name two rows")
    if not all(isinstance(values, list) and len(values) == len(lists[0]) for values in lists):
        raise ValueError("the measures of a pair do not have as many values")
    if not all(value is None or isinstance(value, int | float) for values in lists for value in values):
        raise TypeError("a measure is not a number")
    spearman, overlap, cosine = lists
    return {
        "first": pair["first"],
        "second": pair["second"],
        "spearman": spearman,
        "top_k_overlap": overlap,
        "cosine": cosine,
    }


def _write(folder: Path, pairs: Iterable[AgreementPair], parts: Sequence[AgreementPart]) -> None:
    """Of several pairs of the same rows the last is written."""
    known = {_rows(pair): pair for pair in pairs}
    write_record(folder / FILE, {"pairs": [*known.values()], **({PARTS: parts} if parts else {})})


def _rows(pair: AgreementPair) -> frozenset[str]:
    return frozenset((pair["first"], pair["second"]))


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
