"""A comparison's folder: one run for every model and data set; and the folder that `raison compare --out` writes.

    study.json   the common header (raison.studies.folder), the runs' folders in order, facts about the models
    RUN/         run.json, records.jsonl, ... (see raison.runs.run)

A single comparison reads as a study of one run.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from raison.core.results.scores import MetricScores
from raison.jobs.folder import COMPARISON, STUDY
from raison.report.style import phrases
from raison.runs.headers import ModelHead, check_folder
from raison.runs.run import HEADER, Run, read_run, settings_hash
from raison.runs.statistics import values_of
from raison.runs.table import comparison, finished_texts, scores_of
from raison.runs.task_accuracy import Labels, read_labels
from raison.studies.claims import PairedSample
from raison.studies.folder import Claim, StudyHead, WrittenStudy, left_out, read_header

FOLDERS = (STUDY, COMPARISON)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricClaim(Claim):
    """A claim by a metric, on one run or on all that have its rows."""

    metric: str
    run: str | None = None

    @property
    def measured(self) -> str:
        """The metric."""
        return self.metric


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonHead(StudyHead):
    """Its runs' folders in order, and facts about its models by their keys, which older versions did not write."""

    runs: tuple[str, ...]
    models: Mapping[str, ModelHead] = field(default_factory=dict)
    claims: tuple[MetricClaim, ...] = ()

    def __post_init__(self) -> None:
        for name in self.runs:
            check_folder(name)


@dataclass(frozen=True, slots=True)
class StudyRuns(WrittenStudy):
    """What a study, or a single comparison, has written so far."""

    header: ComparisonHead
    runs: dict[str, Run]
    labels: Labels
    cells: dict[tuple[str, str, str], MetricScores | None] = field(default_factory=dict, compare=False)
    """The cells of a run's table that claims use, each computed once; other intervals are not needed."""

    @property
    def dropped(self) -> int:
        """Broken lines of all runs."""
        return sum(run.dropped for run in self.runs.values())

    @property
    def progress(self) -> tuple[int, int]:
        """The number of texts that all rows of their run have explained, and the number of texts."""
        done = sum(len(finished_texts(run)) for run in self.runs.values())
        return done, sum(run.header.texts for run in self.runs.values())

    def unfinished(self) -> Iterator[str]:
        """What is missing or was left out, for each run."""
        yield from (f"{name}: this run has not begun." for name in self.header.runs if name not in self.runs)
        for name, run in self.runs.items():
            yield from (f"{name}: {sentence}" for sentence in _unfinished(run))

    @property
    def versions(self) -> Mapping[str, str]:
        """Those of the study; of this library, those of the runs."""
        return {**self.header.versions, "raison": ", ".join(sorted({run.header.raison for run in self.runs.values()}))}

    def about(self, run: str) -> ModelHead:
        """Facts about a run's model."""
        return self.header.models.get(run.partition("--")[0], ModelHead())

    def cell(self, run: str, row: str, metric: str) -> MetricScores | None:
        """The cell; None if it does not exist, or no text is complete in every row."""
        key = (run, row, metric)
        if key not in self.cells:
            texts = finished_texts(self.runs[run])
            self.cells[key] = scores_of(self.runs[run], row, metric, texts) if len(texts) else None
        return self.cells[key]

    def to_dict(self) -> dict[str, Any]:
        """The runs' tables, of those with a text that all their rows have explained."""
        tables = {name: comparison(run).to_dict() for name, run in self.runs.items() if len(finished_texts(run))}
        return WrittenStudy.to_dict(self) | {"runs": tables}


def read(folder: Path) -> StudyRuns:
    """What a study, or a single comparison, has written so far. Raises DataError if the folder holds neither."""
    if (folder / HEADER).exists():
        run = read_run(folder)
        name = folder.resolve().name
        digest, versions = settings_hash(run.header), run.header.versions
        head = ComparisonHead(name=name, digest=digest, versions=versions, runs=(name,))
        return StudyRuns(folder, head, "", {name: run}, Labels())
    header, text = read_header(folder, STUDY, ComparisonHead)
    runs = {name: read_run(folder / name) for name in header.runs if (folder / name / HEADER).exists()}
    return StudyRuns(folder, header, text, runs, read_labels(folder))


def places(results: StudyRuns, claim: MetricClaim) -> list[str]:
    """The run that a claim names, or all runs except those that exclude a method of the claim that another run has."""
    if claim.run is not None:
        return [claim.run]
    compared = {label for label in (claim.row, claim.than) if isinstance(label, str)}
    rows = {name: {row.label for row in run.header.rows} for name, run in results.runs.items()}
    lacking = {name for name, labels in rows.items() if not compared <= labels}
    # If no run has them, that has to be reported.
    return [name for name in results.header.runs if name not in lacking or len(lacking) == len(rows)]


def sample(results: StudyRuns, claim: MetricClaim, place: str) -> PairedSample | None:
    """Values of the texts that every row of the run has; for metrics of many texts, values of the groups."""
    row, metric, than = claim.row, claim.metric, claim.than
    if place not in results.runs:
        return None
    cell = results.cell(place, row, metric)
    other = results.cell(place, than, metric) if isinstance(than, str) else float(than)
    if cell is None or other is None:
        return None
    return PairedSample(
        metric=metric,
        row=row,
        than=than,
        first=values_of(cell),
        second=other if isinstance(other, float) else values_of(other),
        mean=cell.summary.mean,
        than_mean=other if isinstance(other, float) else other.summary.mean,
        learned=results.labels.of_run(place, results.about(place), place.partition("--")[2]),
        pool=cell.pool,
    )


def _unfinished(run: Run) -> Iterator[str]:
    done, wanted = len(finished_texts(run)), run.header.texts
    if done < wanted:
        yield f"unfinished: {done:,} of {phrases.count(wanted, 'text')}. The table covers these; resume the run."
    absent = [
        metric for metric in run.header.grouped if any((*key, metric) not in run.groups for key in run.header.keys)
    ]
    if absent:
        yield f"the metrics of all texts are not measured yet for every row: {', '.join(absent)}."
    if run.dropped and (done < wanted or absent):
        yield left_out(run.dropped)
