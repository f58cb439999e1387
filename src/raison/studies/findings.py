"""docs/findings.md: what every study states, and what its records say to it."""

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path

from raison.runs.judging import FEWEST, Verdict
from raison.runs.table import finished_texts
from raison.studies.kinds.comparison.claims import verdicts
from raison.studies.kinds.comparison.results import FILE, STUDY, StudyRuns, read_study

HEADER = (
    "study",
    "run",
    "claim",
    "verdict",
    "Holm",
    "metric",
    "first",
    "second",
    "difference [95 % interval]",
    "n",
    "repeat",
)

_HEAD = f"""# Findings

This page is generated from the records of the studies; do not edit it. A claim *holds* where the 95 % bootstrap
interval of the difference lies wholly on the claimed side of zero, *fails* where it lies wholly on the other one, and
is *undecided* else. Of fewer than {FEWEST} values it says *too few*; of fewer than 30 the studentised bootstrap has to
agree, or the claim is undecided ([why](../benchmarks/results/claim_rules.md)). It is *not judged* where the model is
right on at most 10 points more of the texts than its largest class has, and *missing* where the records lack what it is
about. The difference is the first value minus the second, on the same n texts (for a metric of groups of texts: n
groups). Holm: whether a claim holds, or fails, also after Holm's correction over all claims of its study.

| {" | ".join(HEADER)} |
|{"---|" * len(HEADER)}
"""


def page(folders: Sequence[Path], root: Path = Path()) -> str:
    """The page, in Markdown: one line per claim and run, sorted by study; paths are relative to `root`.

    Raises DataError for a folder that holds no study.
    """
    studies = [read_study(folder) for folder in folders]
    ordered = sorted(studies, key=lambda study: (study.title, _path(study, root)))
    lines = []
    for study in ordered:
        title = study.title + _caveat(study)
        lines += [_line(title, _path(study, root), verdict) for verdict in verdicts(study)]
    return _HEAD + "".join(lines)


def cells(title: str, path: str, verdict: Verdict) -> list[str]:
    """A claim's line under HEADER; `path` is the study file."""
    gap = verdict.difference
    than = verdict.than if isinstance(verdict.than, str) else "the number"
    note = f" ({verdict.note})" if verdict.note else ""
    return [
        title,
        verdict.run,
        verdict.says,
        f"**{verdict.finding}**{note}",
        {None: "–", True: "yes", False: "no"}[verdict.survives],
        verdict.metric,
        f"{_number(verdict.mean)} ({verdict.row})",
        f"{_number(verdict.than_mean)} ({than})",
        f"{_number(gap.mean)} [{_number(gap.low)}, {_number(gap.high)}]" if gap.count else "–",
        str(gap.count),
        f"`raison study run {path}`",
    ]


def _line(title: str, path: str, verdict: Verdict) -> str:
    return f"| {' | '.join(_escaped(cell) for cell in cells(title, path, verdict))} |\n"


def _caveat(study: StudyRuns) -> str:
    """What keeps a study from being whole."""
    path = study.folder / STUDY
    header = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    notes = [] if header.get("limit") is None else [f"first {header['limit']} rows only"]
    finished = all(len(finished_texts(run)) == run.header["texts"] for run in study.runs.values())
    if not finished or len(study.runs) < len(header.get("runs", [])):
        notes.append("not finished")
    return f" ({', '.join(notes)})" if notes else ""


def _path(study: StudyRuns, root: Path) -> str:
    """The study file that was run, which lies beside its records."""
    return Path(os.path.relpath(study.folder / FILE, root)).as_posix()


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.4f}"


def _escaped(cell: str) -> str:
    return " ".join(cell.replace("|", "\\|").split())
