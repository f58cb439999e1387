"""What a study states, held against its records."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from raison.core.errors import DataError
from raison.core.results import MetricScores
from raison.numerics.paired import Difference, against, difference
from raison.runs.judging import UNKNOWN, Learned, Side, Verdict, corrected, judged
from raison.runs.learned import read_labels
from raison.runs.run import Run
from raison.runs.table import finished_texts, scores_of
from raison.studies.kinds.comparison.results import STUDY, StudyRuns


def verdicts(study: StudyRuns) -> list[Verdict]:
    """Every claim of a study on every run that it is about. Raises DataError where study.json cannot be read.

    raison.runs.judging has the rule. A claim that names no run is about all, but those that leave out a method of it
    which another run has.
    """
    header = _header_of(study)
    claims, names = header.get("claims", study.claims), list(header.get("runs", study.runs))
    labels, models = read_labels(study.folder), header.get("models", {})
    tables = {}
    for name, run in study.runs.items():
        model, _, data = name.partition("--")
        tables[name] = _Table(run, finished_texts(run), labels.of_run(name, models.get(model), data))
    return corrected(
        [
            _verdict(claim, name, tables.get(name))
            for claim in claims
            for name in ([claim["run"]] if "run" in claim else _runs_about(claim, names, study.runs))
        ]
    )


def _runs_about(claim: dict[str, Any], names: Sequence[str], runs: Mapping[str, Run]) -> list[str]:
    compared = {claim[key] for key in ("above", "below", "than") if isinstance(claim.get(key), str)}
    lacking = {name for name, run in runs.items() if not compared <= {row["label"] for row in run.header["rows"]}}
    # Where no run has them, that is what is to be said.
    return [name for name in names if name not in lacking] if lacking < runs.keys() else list(names)


def _header_of(study: StudyRuns) -> dict[str, Any]:
    """study.json, which writes methods and metrics of claims as the records do; {} for a single comparison."""
    path = study.folder / STUDY
    if not path.exists():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise DataError(f"cannot read {path}: {error}.") from None


@dataclass(frozen=True, slots=True)
class _Table:
    """The cells of a run's table that claims are about, each made once: intervals of the others need not be."""

    run: Run
    texts: list[int]
    learned: Learned
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
    than_mean = other if isinstance(other, float) else other.summary.mean
    gap = against(_parts(scores), other, scores.pool) if isinstance(other, float) else _against_row(scores, other)
    return judged(Verdict(*about, "missing", scores.summary.mean, than_mean), gap, table.learned)


def _against_row(first: MetricScores, second: MetricScores) -> Difference:
    one, two = _parts(first), _parts(second)
    if one.shape != two.shape:
        # A group metric that is undefined on some groups leaves them out: what is left cannot be paired.
        return UNKNOWN
    return difference(one, two, first.pool)


def _parts(scores: MetricScores) -> np.ndarray:
    """(texts, parts), NaN where undefined."""
    return np.array(scores.parts or [[value] for value in scores.values], dtype=np.float64).reshape(
        len(scores.values), -1
    )
