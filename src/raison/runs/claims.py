"""What a study states, held against its records."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from raison.core.errors import DataError
from raison.core.results import MetricScores
from raison.numerics.bootstrap import pooled_interval
from raison.numerics.paired import Difference, difference
from raison.runs.run import Run
from raison.runs.study import STUDY, StudyRuns
from raison.runs.table import finished_texts, scores_of

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
    """Every claim of a study on every run that it is about. Raises DataError where study.json cannot be read.

    A claim that names no run is about all, but those that leave out a method of it which another run has.
    """
    claims, names = _claims_of(study)
    tables = {name: _Table(run, finished_texts(run)) for name, run in study.runs.items()}
    return [
        _verdict(claim, name, tables.get(name))
        for claim in claims
        for name in ([claim["run"]] if "run" in claim else _runs_about(claim, names, study.runs))
    ]


def _runs_about(claim: dict[str, Any], names: Sequence[str], runs: Mapping[str, Run]) -> list[str]:
    compared = {claim[key] for key in ("above", "below", "than") if isinstance(claim.get(key), str)}
    lacking = {name for name, run in runs.items() if not compared <= {row["label"] for row in run.header["rows"]}}
    # Where no run has them, that is what is to be said.
    return [name for name in names if name not in lacking] if lacking < runs.keys() else list(names)


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


@dataclass(frozen=True, slots=True)
class _Table:
    """The cells of a run's table that claims are about, each made once: intervals of the others need not be."""

    run: Run
    texts: list[int]
    known: dict[tuple[str, str], MetricScores | None] = field(default_factory=dict)

    def cell(self, row: str, metric: str) -> MetricScores | None:
        """None where there is none, or no text that every row has."""
        if (row, metric) not in self.known:
            self.known[row, metric] = scores_of(self.run, row, metric, self.texts) if self.texts else None
        return self.known[row, metric]


def _verdict(claim: dict[str, Any], run: str, table: _Table | None) -> Verdict:
    side: Side = "above" if "above" in claim else "below"
    about = (claim["says"], run, claim["metric"], claim[side], side, claim["than"])
    than = claim["than"]
    if table is None:
        return Verdict(*about, finding="missing")
    scores = table.cell(claim[side], claim["metric"])
    other = table.cell(than, claim["metric"]) if isinstance(than, str) else float(than)
    if scores is None or other is None:
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
