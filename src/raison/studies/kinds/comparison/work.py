"""One comparison for every model and data set of a study: its requirements, its jobs, reused rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from raison.core.errors import RaisonError
from raison.core.model import LanguageModel
from raison.jobs.engine import Job
from raison.judging.compare import noted_header
from raison.judging.estimate import estimate_plan
from raison.judging.plan import Plan
from raison.judging.work import jobs_of
from raison.progress import ProgressCallback, duration
from raison.report.tables.records import Cell, Table
from raison.runs.agreement import write_agreement
from raison.runs.headers import RunHead
from raison.runs.reuse import Portion, known_in, runs_in, take_over
from raison.runs.run import HEADER, Run, open_run
from raison.studies import kind
from raison.studies.data_loading import load_all
from raison.studies.entries import GridRun
from raison.studies.file import Study, StudyError
from raison.studies.folder import header_of as study_header
from raison.studies.kind import EstimateTable
from raison.studies.kinds.comparison.portions import portions_of
from raison.studies.labels import accuracy_of, write_labels
from raison.studies.made import described
from raison.studies.plans import Models, checked_plan, load_entry, plan_of, to_compute, unable

REUSED = (HEADER,)
"""Files of runs whose rows can be taken over from other folders."""


@dataclass(frozen=True, kw_only=True)
class Examined(kind.Examined):
    """A study that can be run: its data, and its header and those of its runs, by name.

    `known` has the texts of each row of a run, by the run's name, that will be taken over from other runs, if some were
    given (`reusing`), and `portions` what these may have.
    """

    known: Mapping[str, Mapping[str, set[int]]]
    portions: Mapping[str, Sequence[Portion]]
    reusing: bool = False

    def work(self) -> Iterator[tuple[str, Plan]]:
        """Every run's name and plan, without rows that are reused for all texts, and texts that all others are reused
        for; one model in memory at a time."""
        plans = _Plans(self)
        for run in self.study.spec.grid.wanted:
            plan, known = plans.of(run), self.known[run.name]
            texts = range(len(plan.texts))
            rows = tuple(row for row in plan.rows if len(known.get(row.label, ())) < len(texts))
            common = set(texts).intersection(*(known.get(row.label, ()) for row in rows)) if rows else ()
            left = replace(plan, rows=rows)
            yield run.name, left.of_texts([number for number in texts if number not in common]) if common else left


class _Plans:
    """A study's plans, one in memory at a time with its model, so that a language model writes its answers once."""

    def __init__(self, examined: Examined) -> None:
        self._examined = examined
        self._models = Models()
        self._known: tuple[str, Plan] | None = None

    def of(self, run: GridRun) -> Plan:
        """A run's plan; its model is loaded now if it is not the last one."""
        if self._known is None or self._known[0] != run.name:
            # It refers to its model, which must leave memory before another is loaded.
            self._known = None
            spec, data = self._examined.study.spec, self._examined.labels[run.data]
            plan = plan_of(spec.request(run), self._models.of(spec.grid.models[run.model]), data)
            self._known = (run.name, plan)
        return self._known[1]


def examine(study: Study, limit: int | None = None, sources: Sequence[Path] = ()) -> Examined:
    """Load every model and data set in turn. Raises StudyError with every problem of any run.

    A method whose rows are all in the runs of `sources` need not work here: its trained explainer may be gone.
    """
    spec = study.spec
    data, reasons = load_all(spec.grid.data, spec.grid.data_keys, limit)
    headers: dict[str, RunHead] = {}
    models: dict[str, dict[str, Any]] = {}
    known: dict[str, dict[str, set[int]]] = {}
    portions: dict[str, list[Portion]] = {}
    runs = runs_in(sources)
    for key in spec.grid.model_keys:
        try:
            model = load_entry(spec.grid.models[key])
            models[key] = described(spec.grid.models[key], model)
        except RaisonError as error:
            reasons.append(f"[models.{key}]: {error}")
            continue
        computed = []
        able = model if isinstance(model, LanguageModel) else None
        for run in spec.grid.of_model(key):
            request, rows, head = spec.request(run), data.get(run.data), None
            if rows is not None:
                plan, against = checked_plan(request, model, rows)
                try:
                    head = None if against or plan is None else noted_header(plan)
                except RaisonError as error:
                    head, against = None, (str(error),)
                reasons += [f"model '{key}' on data '{run.data}': {reason}" for reason in against]
                if head is not None and plan is not None:
                    able = plan.model
                    headers[run.name] = head
                    portions[run.name] = portions_of(plan, head, spec.grid.data[run.data], rows, runs)
                    known[run.name] = known_in(portions[run.name], runs, models[key], agreement=spec.agreement)
            taken, texts = known.get(run.name, {}), 0 if head is None else head.texts
            computed += to_compute(request, {row for row, of_row in taken.items() if len(of_row) == texts})
        reasons += [f"[models.{key}]: {reason}" for reason in unable(able, computed)] if able is not None else []
        # This model must leave memory before the next is loaded.
        del model, able
        plan = None
    if reasons:
        raise StudyError(study.path, reasons)
    # Claims name methods and metrics as the records do, so that readers need no catalogue.
    header = {
        **study_header(study, limit),
        "runs": [run.name for run in spec.grid.wanted],
        "models": models,
        "claims": [claim.to_dict() for claim in spec.claims],
    }
    parts = {run.name: headers[run.name] for run in spec.grid.wanted}
    return Examined(
        study=study, header=header, parts=parts, labels=data, known=known, portions=portions, reusing=bool(sources)
    )


def begin(examined: Examined, folder: Path, sources: Sequence[Path]) -> None:
    """Write every run's header, and the reused rows."""
    spec = examined.study.spec
    for run in spec.grid.wanted:
        there = open_run(examined.parts[run.name], folder / run.name)
        model = examined.header["models"][run.model]
        take_over(there, examined.portions[run.name], runs_in(sources), model, agreement=spec.agreement)


def jobs(examined: Examined, folder: Path, shard: int | None = None) -> list[Job]:
    """For each run chunks of texts, then metrics of many texts, agreement and accuracy; one model at a time."""
    plans, listed = _Plans(examined), []
    for run in examined.study.spec.grid.wanted:
        name = run.name
        there = open_run(examined.parts[name], folder / name, shard)
        listed += jobs_of(partial(plans.of, run), there, name)
        close = partial(_close, examined, run, there)
        listed.append(Job(f"{name} closed", f"closing {name}", close, lambda: False, last=True))
    return listed


def _close(examined: Examined, run: GridRun, finished: Run, advance: ProgressCallback) -> None:
    """Agreement and accuracy of a finished run."""
    assert finished.folder is not None, "a run of a study has its folder"
    names = examined.study.spec.grid.models[run.model].labels
    right = accuracy_of(finished, examined.labels[run.data], examined.header["models"][run.model]["classes"], names)
    write_labels(finished.folder.parent, examined.labels, {run.name: right})
    if examined.study.spec.agreement:
        write_agreement(finished)
    advance(1)


def estimate(examined: Examined) -> EstimateTable:
    """The passes and the time of every run; a few passes are timed."""
    costs = {name: estimate_plan(plan) for name, plan in examined.work()}
    rows = [
        (
            name,
            tuple(
                Cell(text)
                for text in (
                    f"{one.texts:,}",
                    f"{one.total_forwards:,}",
                    f"{one.total_backwards:,}",
                    duration(one.seconds),
                )
            ),
        )
        for name, one in costs.items()
    ]
    total = duration(sum(one.seconds for one in costs.values()))
    return EstimateTable(
        Table("", ("run", "texts", "forward", "backward", "about"), tuple(rows)),
        (f"about {total} here, at most: equal perturbations are evaluated once", *_reused(examined)),
        {"runs": {name: asdict(one) for name, one in costs.items()}},
    )


def _reused(examined: Examined) -> Iterator[str]:
    """What each run takes over from the other folders, if some were given."""
    for name, rows in examined.known.items() if examined.reusing else ():
        head = examined.parts[name]
        taken = f"{name}: {len(rows)} of {len(head.rows)} rows are taken over"
        if not rows:
            taken += ", because no folder has one for the same model, texts, settings and versions"
        fewer = min((len(texts) for texts in rows.values()), default=head.texts)
        yield taken if fewer == head.texts else f"{taken}, not all of them for all {head.texts:,} texts"
