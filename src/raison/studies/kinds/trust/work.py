"""Run a study of trust: check everything, then one model after the other; resumable."""

import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from raison._version import __version__
from raison.core.errors import RaisonError
from raison.data import Dataset
from raison.data.digest import dataset_digest
from raison.jobs.folder import TRUST, working_in
from raison.jobs.identity import DATA, IDENTITY, SETTINGS, Identity, of_several
from raison.methods import CATALOGUE
from raison.models.derived.identity import files_identity, identity_of
from raison.studies.headers import begin_study, check_goes_on, check_header
from raison.studies.kinds.comparison.spec import StudyError
from raison.studies.kinds.comparison.work import folder_of
from raison.studies.kinds.trust.jobs import Run, about_model, do_run, entry_of, reasons
from raison.studies.kinds.trust.spec import TrustStudy, read
from raison.studies.labels import write_labels
from raison.studies.plans import load_named_model
from raison.studies.rows import load_rows
from raison.trust import calls as trust_calls
from raison.trust.results import KIND, SCHEMA, read_run
from raison.trust.works import Works

_LIBRARIES = ("torch", "transformers", "numpy")


@dataclass(frozen=True, slots=True)
class ExaminedTrust:
    """A study that can be run: its data, at most `limit` rows of each, and its header."""

    study: TrustStudy
    works: Works
    data: Mapping[str, Dataset]
    header: Mapping[str, Any]


def run(
    path: str | Path,
    out: str | Path | None = None,
    limit: int | None = None,
    resume: bool = False,
    progress: bool = True,
) -> Path:
    """Run a file of trust, and return the folder with its records; see raison.studies.kinds.comparison.work.run.

    Raises StudyError with every mistake of the file, or of what its models and data allow, before anything runs, and
    DataError for a folder that holds something else, or this study without `resume`.
    """
    works = trust_calls.works()
    study = read(path, works)
    folder = trust_folder(study, out)
    check_trust_folder(folder, study, limit, resume)
    return execute_trust(examine_trust(study, works, limit), folder, progress)


def trust_folder(study: TrustStudy, out: str | Path | None) -> Path:
    """Where a study is written."""
    return folder_of(study.as_study, out)


def check_trust_folder(folder: Path, study: TrustStudy, limit: int | None, resume: bool) -> None:
    """DataError unless the study may write here: the folder holds no study, or with `resume` this one."""
    check_goes_on(folder, TRUST, study.digest, limit, resume)


def examine_trust(study: TrustStudy, works: Works, limit: int | None = None) -> ExaminedTrust:
    """Load every model and data set in turn. Raises StudyError with all that stands in the way of any run."""
    data, found = _load_data(study, limit)
    models: dict[str, dict[str, Any]] = {}
    entries: dict[str, dict[str, Any]] = {}
    identities: dict[str, Identity] = {}
    for key in dict.fromkeys(model for model, _ in study.runs):
        try:
            model = load_named_model(study.models[key])
            models[key] = about_model(study, key, model, works)
            identities[key] = {**identity_of(model), **files_identity(model, map(CATALOGUE.create, study.methods))}
        except RaisonError as error:
            found.append(f"[models.{key}]: {error}")
            continue
        for run in _runs(study, key, data):
            against = reasons(study, works, model, run)
            found += [f"model '{key}' on data '{run.data}': {reason}" for reason in against]
            if not against:
                entries[run.name] = entry_of(study, works, model, run)
                found += _nothing_left(entries[run.name])
        # The next one must not find this one in memory.
        del model
    if found:
        raise StudyError(study.path, found)
    header = _header(study, limit, models, [entries[name] for name in study.run_names])
    texts = {name: {DATA: dataset_digest(part)} for name, part in data.items()}
    header[IDENTITY] = {**of_several(identities), **of_several(texts), SETTINGS: study.digest}
    return ExaminedTrust(study, works, data, header)


def execute_trust(examined: ExaminedTrust, folder: Path, progress: bool = True) -> Path:
    """Do what the folder lacks, one model after the other."""
    check_header(folder, TRUST, examined.header)
    with working_in(folder, TRUST):
        begin_study(folder, TRUST, examined.header, examined.study.text)
        _execute(examined, folder, progress)
    return folder


def _execute(examined: ExaminedTrust, folder: Path, progress: bool) -> None:
    study = examined.study
    # All rows of the data: the classes of the few texts that are attacked say little.
    write_labels(folder, {key: load_rows(study.data[key], None) for key in examined.data}, {})
    entries = {entry["name"]: entry for entry in examined.header["runs"]}
    for key in dict.fromkeys(model for model, _ in study.runs):
        left = [run for run in _runs(study, key, examined.data) if read_run(folder, entries[run.name]).missing]
        if left:
            model = load_named_model(study.models[key])
            for run in left:
                do_run(study, examined.works, model, run, (folder, entries[run.name], progress))
            del model


def _runs(study: TrustStudy, model: str, data: Mapping[str, Dataset]) -> list[Run]:
    return [Run(model, source, data[source]) for of, source in study.runs if of == model and source in data]


def _load_data(study: TrustStudy, limit: int | None) -> tuple[dict[str, Dataset], list[str]]:
    data, found = {}, []
    # The texts of a draw are drawn before a limit: fewer texts are texts of the same draw.
    most = study.texts() if limit is None else min(limit, study.texts())
    for key in dict.fromkeys(source for _, source in study.runs):
        try:
            data[key] = load_rows(study.data[key], most)
        except RaisonError as error:
            found.append(f"[data.{key}]: {error}")
    return data, found


def _nothing_left(entry: Mapping[str, Any]) -> list[str]:
    """The parts of a study in which no method is left, one line each."""
    found = []
    if entry["randomisation"] and not entry["randomisation"]["methods"]:
        why = next(iter(entry["randomisation"]["left_out"].values()))
        found.append(f"{entry['name']}: [randomisation] leaves out every method; of the first: {why}")
    for variant in (entry["attacks"] or {}).get("variants", ()):
        if not variant["methods"]:
            kind = "substitution" if variant["attack"] == "substitution" else "embedding"
            why = next(iter(entry["attacks"]["left_out"][kind].values()))
            found.append(f"{entry['name']}: [attacks] leaves out every method; of the first: {why}")
    return list(dict.fromkeys(found))


def _header(
    study: TrustStudy, limit: int | None, models: Mapping[str, Any], entries: list[dict[str, Any]]
) -> dict[str, Any]:
    """trust.json, with methods written as the records do, so that readers need no catalogue."""
    header = {
        "schema": SCHEMA,
        "kind": KIND,
        "name": study.name,
        "digest": study.digest,
        "limit": limit,
        "methods": study.methods,
        "models": models,
        "runs": entries,
        "claims": study.claims,
        "versions": {
            "raison": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in _LIBRARIES},
        },
    }
    # Through JSON: tuples and lists must not differ when it is compared with what a file holds.
    return dict(json.loads(json.dumps(header)))
