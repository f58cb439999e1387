"""The file of a comparison: which models explain which data, by which methods, judged by which metrics.

schema = 1
title = "..."
methods = ["integrated_gradients(steps=20)", "lime"]
metrics = ["token_f1", "auroc"]
[models.sst2]
name = "demo/sst2"
[data.movies]
source = "eraser_movies"
[examples]
top = 3
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from raison.core.errors import RaisonError
from raison.core.settings.tables import FLAT
from raison.explaining.measuring import create_metrics
from raison.judging.plan import plan_rows
from raison.methods import CATALOGUE as METHODS
from raison.metrics import CATALOGUE as METRICS
from raison.report.pages.examples import ExamplesAsked
from raison.studies import parts
from raison.studies.entries import OF_RUNS, About, Grid, GridRun, StudySettings
from raison.studies.file import MistakesError, entries_of
from raison.studies.kinds.comparison.results import MetricClaim
from raison.studies.parts import ClaimNames, canonical_metric, canonical_row, claim_of
from raison.studies.plans import RunRequest


@dataclass(frozen=True, slots=True)
class ComparisonSpec:
    """The file. `claims` of a valid file name rows and metrics as the records do."""

    about: Annotated[About, FLAT]
    grid: Annotated[Grid, FLAT]
    methods: tuple[str, ...]
    metrics: tuple[str, ...]
    select: tuple[str, ...] = ()
    agreement: bool = False
    settings: StudySettings = StudySettings()  # noqa: RUF009
    examples: ExamplesAsked | None = None
    claims: Annotated[tuple[MetricClaim, ...], OF_RUNS] = ()

    def request(self, run: GridRun) -> RunRequest:
        """The request of one run."""
        data = self.grid.data[run.data]
        return RunRequest(
            run.model,
            self.grid.models[run.model],
            tuple(method for method in self.methods if method not in run.without),
            self.metrics,
            replace(self.settings, unit=data.unit or self.settings.unit),
            self.select,
            data.template,
        )


def tools() -> None:
    """Has no functions that tests would replace."""


def parse(table: Mapping[str, Any], place: Path, _tools: None) -> ComparisonSpec:
    """A parsed file in the folder `place`. Raises MistakesError with every mistake in it."""
    study, mistakes = entries_of(ComparisonSpec, table)
    rows, wrong = _rows(study, table)
    mistakes += parts.settings_mistakes(study.settings) + wrong
    metrics, wrong = parts.labels_in(study.metrics, "metrics", METRICS, empty=parts.unread(table, "metrics"))
    mistakes += wrong + parts.grid_mistakes(study.grid, study.methods)
    runs = {run.name for run in study.grid.wanted}
    known = ClaimNames(
        {"row": rows, "metric": metrics or None, "run": runs or None},
        {"row": canonical_row, "metric": canonical_metric},
        {"row": "methods", "metric": "metrics"},
    )
    for where, claim in parts.read_claims(study.claims, mistakes):
        mistakes += known.rows(claim, where, "row")
        mistakes += known.name(where, "metric", claim.metric) + known.name(where, "run", claim.run)
    mistakes += parts.examples_mistakes(study.examples, rows, canonical_row)
    if mistakes:
        raise MistakesError(mistakes)
    claims = (replace(claim_of(one, canonical_row), metric=canonical_metric(one.metric)) for one in study.claims)
    return replace(study, grid=parts.grid_beside(place, study.grid), claims=tuple(claims))


def _rows(study: ComparisonSpec, table: Mapping[str, Any]) -> tuple[set[str] | None, list[str]]:
    """The labels of the table's rows, None if they are unknown, and the mistakes in methods and select."""
    methods, mistakes = parts.labels_in(study.methods, "methods", METHODS, empty=parts.unread(table, "methods"))
    choosers, wrong = parts.labels_in(study.select, "select", METRICS, empty=True)
    if wrong:
        return None, mistakes + wrong
    # Mistakes in the selection are reported even if the methods are not known yet.
    specs: Sequence[str] = study.methods if methods else ["random(draws=2)"]
    try:
        rows = plan_rows(
            [METHODS.create(spec) for spec in specs], create_metrics(sorted(choosers or ())), study.settings.seeds
        )
    except RaisonError as error:
        return None, [*mistakes, f"select: {error}"]
    return ({row.label for row in rows} if methods else None), mistakes
