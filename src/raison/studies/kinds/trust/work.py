"""A study of trust: its requirements for every model and data set, and its jobs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from raison.core.errors import RaisonError
from raison.core.model import LanguageModel
from raison.data import Dataset
from raison.data.digest import dataset_digest
from raison.jobs.engine import Job
from raison.jobs.identity import DATA, IDENTITY, SETTINGS, Identity, digest_of, of_one, of_several
from raison.methods import CATALOGUE
from raison.models.derived.identity import files_identity, identity_of
from raison.progress import ProgressCallback
from raison.report.tables.records import Cell, Table
from raison.runs.task_accuracy import read_labels
from raison.studies import kind
from raison.studies.data_loading import load_some_and_all
from raison.studies.entries import Grid, GridRun
from raison.studies.file import Study, StudyError
from raison.studies.folder import header_of, versions
from raison.studies.kind import EstimateTable
from raison.studies.kinds.trust.coverage import unmeasured
from raison.studies.labels import write_labels
from raison.studies.made import described
from raison.studies.measured_accuracy import ROWS, LabelledSample, accuracy_on, labelled_sample
from raison.studies.plans import Models, learned_from, load_named_model, unable, unreadable_texts
from raison.trust.results import ATTACKED_BY, ATTACKS, SIMILARITIES, TrustRun, head_of
from raison.trust.trial import entry_of, refused
from raison.trust.trial_jobs import TrialJobs

REUSED = (SIMILARITIES, ATTACKS)
"""Stores whose records can be taken over from other folders."""


@dataclass(frozen=True, kw_only=True)
class Examined(kind.Examined):
    """A study that can be run: its texts, and its header. `labels` are those of all rows, because the classes of a few
    texts say little; `samples` are the texts for each run's accuracy, None if their labels are not classes of the
    model."""

    data: Mapping[str, Dataset]
    samples: Mapping[str, LabelledSample | None]


def examine(study: Study, limit: int | None = None, _sources: Sequence[Path] = ()) -> Examined:
    """Load every model and data set in turn. Raises StudyError with every problem of any run."""
    grid = study.spec.grid
    # Texts are drawn before the limit of the call applies, so that fewer texts belong to the same draw.
    most = study.spec.texts if limit is None else min(limit, study.spec.texts)
    data, whole, reasons = _load(grid, most)
    samples: dict[str, LabelledSample | None] = {}
    models: dict[str, dict[str, Any]] = {}
    entries: dict[str, dict[str, Any]] = {}
    identities: dict[str, Identity] = {}
    for key in grid.model_keys:
        try:
            model = load_named_model(grid.models[key])
            models[key] = _about(study, key, model)
            methods = map(CATALOGUE.create, study.spec.methods)
            identities[key] = {**identity_of(model), **files_identity(model, methods)}
        except RaisonError as error:
            reasons.append(f"[models.{key}]: {error}")
            continue
        for run in (run for run in grid.of_model(key) if run.data in data):
            against = _reasons(study, model, run, data[run.data])
            reasons += [f"model '{key}' on data '{run.data}': {reason}" for reason in against]
            if not against:
                entry = entries[run.name] = _entry(study, model, run, data[run.data])
                reasons += head_of(entry).nothing_left
                names, asked = grid.models[key].labels, ROWS if limit is None else min(limit, ROWS)
                known = whole.get(run.data)
                samples[run.name] = None if known is None else labelled_sample(model, known, names, asked)
        # This model must leave memory before the next is loaded.
        del model
    if not reasons:
        planned = [TrustRun(head_of(entries[run.name]), {}, {}) for run in grid.wanted]
        reasons += unmeasured(study.spec.claims, planned)
    if reasons:
        raise StudyError(study.path, reasons)
    header = {
        **header_of(study, limit),
        "methods": study.spec.methods,
        "models": models,
        "runs": [entries[run.name] for run in grid.wanted],
        "claims": [claim.to_dict() for claim in study.spec.claims],
    }
    texts = {name: {DATA: dataset_digest(part)} for name, part in data.items()}
    header[IDENTITY] = {**of_several(identities), **of_several(texts), SETTINGS: study.digest}
    return Examined(study=study, header=header, labels=whole, data=data, samples=samples)


def _load(grid: Grid, most: int) -> tuple[dict[str, Dataset], dict[str, Dataset], list[str]]:
    """At most so many rows of each data set, all of its rows, and the reasons why some cannot be loaded."""
    data, whole, reasons = {}, {}, []
    for key in grid.data_keys:
        try:
            data[key], everything = load_some_and_all(grid.data[key], most)
        except RaisonError as error:
            reasons.append(f"[data.{key}]: {error}")
            continue
        if everything is not None:
            whole[key] = everything
    return data, whole, reasons


def _about(study: Study, key: str, model: LanguageModel) -> dict[str, Any]:
    """The description of a model in figures and tables."""
    blocks = None if study.spec.randomisation is None else study.tools.blocks(model)
    return {**described(study.spec.grid.models[key], model), "blocks": blocks}


def _reasons(study: Study, model: LanguageModel, run: GridRun, data: Dataset) -> list[str]:
    """Why a run is impossible: methods that the model does not allow, texts that it cannot read."""
    trial = study.spec.trial(run)
    reasons = learned_from(study.spec.grid.models[run.model], data)
    reasons += unable(model, [CATALOGUE.create(method) for method in study.spec.methods])
    reasons += unreadable_texts(model, data, trial.settings.unit, trial.settings.truncate)
    return list(dict.fromkeys(reasons)) or refused(trial, study.tools, model, data.texts)


def _entry(study: Study, model: LanguageModel, run: GridRun, data: Dataset) -> dict[str, Any]:
    about = {"name": run.name, "model": run.model, "data": run.data, "source": data.name}
    return about | entry_of(study.spec.trial(run), study.tools, model, data.texts)


def begin(examined: Examined, folder: Path, sources: Sequence[Path]) -> None:
    """Take over records."""
    for bench in _benches(examined, folder, Models()):
        bench.take_over(sources)


def jobs(examined: Examined, folder: Path, shard: int | None = None) -> list[Job]:
    """For every run randomisation, attacks, substitution and accuracy; one model in memory at a time."""
    models, listed = Models(), []
    for run, bench in zip(examined.study.spec.grid.wanted, _benches(examined, folder, models, shard), strict=True):
        listed += [*bench.jobs(), *_accuracy_jobs(examined, run, folder, models)]
    return listed


def _accuracy_jobs(examined: Examined, run: GridRun, folder: Path, models: Models) -> Iterator[Job]:
    """The accuracy on the study's data, which may differ from those that the model was trained on."""
    sample = examined.samples[run.name]
    if sample is not None:
        measure = partial(_measure, examined, run, sample, folder, models)
        known, size = partial(_is_known, folder, run), len(sample.texts)
        yield Job(f"{run.name} accuracy", f"accuracy, {run.name}", measure, known, size=size, last=True)


def _is_known(folder: Path, run: GridRun) -> bool:
    return run.name in read_labels(folder).accuracies


def _measure(
    examined: Examined, run: GridRun, sample: LabelledSample, folder: Path, models: Models, advance: ProgressCallback
) -> None:
    model = models.predicting(examined.study.spec.grid.models[run.model])
    write_labels(folder, examined.labels, {run.name: accuracy_on(model, sample, advance)})


def _benches(examined: Examined, folder: Path, models: Models, shard: int | None = None) -> list[TrialJobs]:
    study, benches = examined.study, []
    entries = {entry["name"]: head_of(entry) for entry in examined.header["runs"]}
    for run in study.spec.grid.wanted:
        model = partial(models.predicting, study.spec.grid.models[run.model])
        texts, entry = examined.data[run.data].texts, entries[run.name]
        # A data set named like the model is among its parts; of it, single texts count.
        known = {**of_one(examined.header[IDENTITY], run.model), DATA: "", "versions": digest_of(versions())}
        benches.append(TrialJobs(study.spec.trial(run), study.tools, model, texts, entry, known, folder, shard))
    return benches


def estimate(examined: Examined) -> EstimateTable:
    """The planned work, and what is left out."""
    rows = []
    reasons: dict[str, None] = {}
    for entry in map(head_of, examined.header["runs"]):
        planned = TrustRun(entry, {}, {})
        similarities, attacks = (
            sum(1 for _ in keys) for keys in (planned.wanted_similarities(), planned.wanted_attacks())
        )
        without = {} if entry.randomisation is None else {"is not randomised": entry.randomisation.left_out}
        if entry.attacks is not None:
            without |= {
                f"is not attacked by {ATTACKED_BY[kind]}": of_kind for kind, of_kind in entry.attacks.left_out.items()
            }
        for part, of_part in without.items():
            reasons |= dict.fromkeys(f"{method} {part}: {why}" for method, why in of_part.items())
        left_out = {method for of_part in without.values() for method in of_part}
        sample = examined.samples[entry.name]
        predicted = 0 if sample is None else len(sample.texts)
        counts = (planned.blocks, similarities, attacks, predicted, len(left_out))
        rows.append((entry.name, tuple(Cell(f"{count:,}" if count else "–") for count in counts)))
    head = (
        "run",
        "blocks",
        "explanations under other parameters",
        "attacks",
        "predictions for the accuracy",
        "left out",
    )
    values = {"models": examined.header["models"], "runs": examined.header["runs"]}
    return EstimateTable(Table("", head, tuple(rows)), tuple(reasons), values)
