"""What a study states, held against its records."""

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from raison.core.errors import DataError, UnknownNameError
from raison.core.results import Comparison, MetricScores
from raison.numerics.bootstrap import pooled_interval
from raison.numerics.paired import Difference, difference
from raison.runs.study import STUDY, StudyRuns
from raison.runs.table import comparison

Side = Literal["above", "below"]
Finding = Literal["holds", "fails", "undecided", "missing"]

_UNKNOWN = Difference(math.nan, math.nan, math.nan, math.nan, 0)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One claim on one run: `row` is `side` `than` (another row, or a number) by `metric`.

    It holds where the 95 % interval of the difference, row minus than, lies wholly on the claimed side of zero, fails
    where it lies wholly on the other one, and is undecided else; it is missing where the records lack what it is about.
    `mean` and `than_mean` are the two values in the table. `difference` has NaN for what is unknown, and no p-value
    where `than` is a number. On a group metric it counts groups instead of texts.
    """

    says: str
    run: str
    metric: str
    row: str
    side: Side
    than: str | float
    finding: Finding
    mean: float = math.nan
    than_mean: float = math.nan
    difference: Difference = _UNKNOWN

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values; NaN becomes None."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain


def verdicts(study: StudyRuns) -> list[Verdict]:
    """Every claim of a study on every run that it is about. Raises DataError where study.json cannot be read."""
    claims, names = _claims_of(study)
    tables = dict(_comparisons(study))
    return [
        _verdict(claim, name, tables.get(name))
        for claim in claims
        for name in ([claim["run"]] if "run" in claim else names)
    ]


def _claims_of(study: StudyRuns) -> tuple[list[dict[str, Any]], list[str]]:
    """The claims, and the names of all runs. study.json writes methods and metrics as the records do."""
    path = study.folder / STUDY
    if not path.exists():
        return study.claims, list(study.runs)
    try:
        header = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {error}.") from None
    return header.get("claims", study.claims), list(header["runs"])


def _comparisons(study: StudyRuns) -> Iterator[tuple[str, Comparison]]:
    for name, run in study.runs.items():
        try:
            yield name, comparison(run)
        except DataError:
            # No text is finished yet: whatever is claimed of this run is missing.
            continue


def _verdict(claim: dict[str, Any], run: str, table: Comparison | None) -> Verdict:
    side: Side = "above" if "above" in claim else "below"
    about = (claim["says"], run, claim["metric"], claim[side], side, claim["than"])
    than = claim["than"]
    try:
        if table is None:
            return Verdict(*about, finding="missing")
        scores = table[claim[side]][claim["metric"]]
        other = table[than][claim["metric"]] if isinstance(than, str) else float(than)
    except UnknownNameError:
        return Verdict(*about, finding="missing")
    other_count, than_mean = (1, other) if isinstance(other, float) else (other.summary.count, other.summary.mean)
    if not (scores.summary.count and other_count):
        return Verdict(*about, "missing", scores.summary.mean, than_mean)
    gap = _against_number(scores, other) if isinstance(other, float) else _against_row(scores, other)
    return Verdict(*about, _finding(gap, side), scores.summary.mean, than_mean, gap)


def _finding(gap: Difference, side: Side) -> Finding:
    low, high = (gap.low, gap.high) if side == "above" else (-gap.high, -gap.low)
    # An interval that is NaN is on no side.
    return "holds" if low > 0 else "fails" if high < 0 else "undecided"


def _against_row(first: MetricScores, second: MetricScores) -> Difference:
    one, two = _parts(first), _parts(second)
    if one.shape != two.shape:
        # A group metric that is undefined on some groups leaves them out: what is left cannot be paired.
        return _UNKNOWN
    return difference(one, two, first.pool)


def _against_number(scores: MetricScores, number: float) -> Difference:
    parts = _parts(scores)
    known = parts[~np.isnan(parts).any(axis=1)]
    value, low, high = pooled_interval(known, scores.pool)
    return Difference(value - number, low - number, high - number, math.nan, len(known))


def _parts(scores: MetricScores) -> np.ndarray:
    """(texts, parts), NaN where undefined."""
    return np.array(scores.parts or [[value] for value in scores.values], dtype=np.float64).reshape(
        len(scores.values), -1
    )


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return None if isinstance(value, float) and math.isnan(value) else value
