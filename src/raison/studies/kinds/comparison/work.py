"""Run a study: check everything, then one comparison for every model and data set, resumable."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from raison._version import __version__
from raison.compare import Plan, begin, execute, header_of
from raison.core.errors import RaisonError
from raison.data import Dataset
from raison.jobs.folder import STUDY as STUDY_KIND
from raison.jobs.folder import refuse_others, working_in, write_marker
from raison.jobs.store import write_whole
from raison.progress import Advance
from raison.runs import agreement
from raison.runs.reuse import rows_in, runs_in, take_over
from raison.runs.run import HEADER, SCHEMA, Run, check_same
from raison.studies.headers import check_goes_on
from raison.studies.kinds.comparison.check import run_name
from raison.studies.kinds.comparison.results import FILE, STUDY
from raison.studies.kinds.comparison.spec import Study, StudyError, read
from raison.studies.labels import accuracy_of, write_labels
from raison.studies.made import described
from raison.studies.plans import load_named_model, load_rows, plan_of, plans, reasons_against, unable_methods

FOLDER = Path("runs")
"""Where studies write unless told otherwise, one folder each."""


@dataclass(frozen=True, slots=True)
class Examined:
    """A study that can be run: its data, at most `limit` rows of each set, the headers of its runs by name.

    `models` is what figures say of each model, by its key in the study; `known` has the rows of a run, by its name,
    that will be taken over from other runs.
    """

    study: Study
    limit: int | None
    data: dict[str, Dataset]
    headers: dict[str, dict[str, Any]]
    models: dict[str, dict[str, Any]]
    known: dict[str, set[str]]

    def plans(self) -> Iterator[tuple[str, Plan]]:
        """Every run's name and plan; its model is loaded when it is asked for."""
        return plans(self.study, self.data)

    def work(self) -> Iterator[tuple[str, Plan]]:
        """As `plans`, without what will be taken over."""
        for name, plan in self.plans():
            yield name, replace(plan, rows=tuple(row for row in plan.rows if row.label not in self.known[name]))


def run(
    path: str | Path,
    out: str | Path | None = None,
    limit: int | None = None,
    resume: bool = False,
    progress: bool | Advance = True,
    *,
    reuse: Sequence[Path] = (),
) -> Path:
    """Run a study file, and return the folder with its records.

    Args:
        path: the study file; see raison.studies.kinds.comparison.spec.
        out: the folder; by default one in runs/, called as the study.
        limit: use the first so many rows of every data set. Recorded: it is another study then.
        resume: go on with what `out` holds; the result equals that of a study that was never interrupted.
        progress: a progress bar on stderr, or a function that is told of finished texts.
        reuse: folders of runs or studies: rows of the same method on the same model, texts and settings are taken over
            from there, whole (raison.runs.reuse).

    Raises:
        StudyError: with every mistake of the file, or of what its models and data allow, before anything runs.
        DataError: a folder that holds something else, or this study without `resume`.
    """
    study = read(path)
    folder = folder_of(study, out)
    check_folder(folder, study, limit, resume)
    sources = runs_in(reuse)
    return execute_study(examine(study, limit, sources), folder, progress, sources)


def folder_of(study: Study, out: str | Path | None) -> Path:
    """Where a study is written."""
    return FOLDER / study.name if out is None else Path(out)


def check_folder(folder: Path, study: Study, limit: int | None, resume: bool) -> None:
    """DataError unless the study may write here: the folder holds no study, or with `resume` this one."""
    check_goes_on(folder, STUDY_KIND, study.digest, limit, resume)


def examine(study: Study, limit: int | None = None, sources: Sequence[Path] = ()) -> Examined:
    """Load every model and data set in turn. Raises StudyError with all that stands in the way of any run.

    A method all of whose rows the runs in `sources` have need not work here: a trained explainer may be gone.
    """
    data, reasons = _load_data(study, limit)
    headers: dict[tuple[str, str], dict[str, Any]] = {}
    models: dict[str, dict[str, Any]] = {}
    known: dict[tuple[str, str], set[str]] = {}
    for key in dict.fromkeys(model for model, _ in study.runs):
        try:
            model = load_named_model(study.models[key])
            models[key] = described(study.models[key], model)
        except RaisonError as error:
            reasons.append(f"[models.{key}]: {error}")
            continue
        for source in (source for of_model, source in study.runs if of_model == key and source in data):
            against = reasons_against(study, model, (key, source), data[source])
            reasons += [f"model '{key}' on data '{source}': {reason}" for reason in against]
            if not against:
                run = (key, source)
                headers[run] = header_of(plan_of(study, model, run, data[source]))
                known[run] = rows_in(headers[run], sources, models[key], agreement=study.agreement)
        reasons += [f"[models.{key}]: {reason}" for reason in unable_methods(study, model, key, known)]
        # The next one must not find this one in memory.
        del model
    if reasons:
        raise StudyError(study.path, reasons)
    of_runs = {run_name(*run): headers[run] for run in study.runs}
    return Examined(study, limit, data, of_runs, models, {run_name(*run): known[run] for run in study.runs})


def execute_study(
    examined: Examined, folder: Path, progress: bool | Advance = True, sources: Sequence[Path] = ()
) -> Path:
    """Do what the folder lacks, one run after the other; what the runs in `sources` have found is taken from there.

    Raises DataError where another process is at work, and where a run was begun with another model or other data.
    """
    refuse_others(folder, STUDY_KIND)
    for name, header in examined.headers.items():
        if (folder / name / HEADER).exists():
            # A model or data that have changed are found before the first run starts.
            check_same(folder / name, header)
    with working_in(folder, STUDY_KIND):
        _execute(examined, folder, progress, sources)
    return folder


def _execute(examined: Examined, folder: Path, progress: bool | Advance, sources: Sequence[Path]) -> None:
    if not (folder / STUDY).exists():
        write_marker(folder, STUDY_KIND, _header(examined))
    if not (folder / FILE).exists():
        write_whole(folder / FILE, examined.study.text)
    write_labels(folder, examined.data, {})
    for name, plan in examined.plans():
        found = begin(plan, examined.headers[name], folder / name)
        key, data = next(run for run in examined.study.runs if run_name(*run) == name)
        take_over(found, sources, examined.models[key], agreement=examined.study.agreement)
        execute(plan, found, progress)
        right = accuracy_of(found, examined.data[data], examined.study.models[key].labels)
        write_labels(folder, examined.data, {name: right})
        if examined.study.agreement:
            _write_agreement(found, folder / name)


def _load_data(study: Study, limit: int | None) -> tuple[dict[str, Dataset], list[str]]:
    data, reasons = {}, []
    for key in dict.fromkeys(source for _, source in study.runs):
        try:
            data[key] = load_rows(study.data[key], limit)
        except RaisonError as error:
            reasons.append(f"[data.{key}]: {error}")
    return data, reasons


def _header(examined: Examined) -> dict[str, Any]:
    """study.json. Claims are in it as the records name methods and metrics, so that readers need no catalogue."""
    study = examined.study
    return {
        "schema": SCHEMA,
        "name": study.name,
        "digest": study.digest,
        "limit": examined.limit,
        "versions": {"raison": __version__, **next(iter(examined.headers.values()))["versions"]},
        "runs": list(study.run_names),
        "models": examined.models,
        "claims": [claim.to_dict() for claim in study.claims],
    }


def _write_agreement(found: Run, folder: Path) -> None:
    """Of the rows as the methods give them, under their first seed: a selected map is no method's own.

    Of rows that were taken over without explanations, the pairs that came with them are there already.
    """
    rows = [(row["label"], row["seeds"][0]) for row in found.header["rows"] if row["selected_by"] is None]
    explained = {row: found.explanations(row, seed) for row, seed in rows if found.explains(row, seed)}
    agreement.add_pairs(folder, agreement.agreement(explained)["pairs"])
