"""Run a study of trainings: check everything, then one task and seed after the other; resumable, by shares."""

import json
import platform
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from raison._version import __version__
from raison.core.errors import InputError, RaisonError
from raison.core.registry import label_of
from raison.evaluate import create_metrics, info_of
from raison.jobs.folder import TRAININGS, beginning, working_in
from raison.jobs.identity import DATA, IDENTITY, SETTINGS, digest_of, of_several
from raison.methods import CATALOGUE
from raison.models.derived.identity import base_identity
from raison.studies.headers import begin_study, check_goes_on, check_header
from raison.studies.kinds.comparison.spec import StudyError
from raison.studies.kinds.comparison.work import folder_of
from raison.studies.kinds.trainings import recipes as trainings_recipes
from raison.studies.kinds.trainings.jobs import TaskData, load_task, reasons, untrained
from raison.studies.kinds.trainings.pair import Workshop, do_pair
from raison.studies.kinds.trainings.recipes import Recipes, as_values, make
from raison.studies.kinds.trainings.results import KIND, PLAIN, SCHEMA, read_records, store_of
from raison.studies.kinds.trainings.spec import TrainingStudy, read
from raison.studies.labels import write_labels

_LIBRARIES = ("torch", "transformers", "numpy")
_SHARD = re.compile(r"([1-9]\d*)/([1-9]\d*)")


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `count` processes that share a study: it takes every `count`-th pair of task and seed from `number` on."""

    number: int = 1
    count: int = 1


@dataclass(frozen=True, slots=True)
class ExaminedTrainings:
    """A study that can be run: its data, at most `limit` rows of each part, and its header."""

    study: TrainingStudy
    recipes: Recipes
    limit: int | None
    data: Mapping[str, TaskData]
    header: Mapping[str, Any]


def shard_of(text: str | None) -> Shard:
    """The share that "1/2" names; all of the study for None. Raises InputError."""
    if text is None:
        return Shard()
    found = _SHARD.fullmatch(text.strip())
    if not found or int(found[1]) > int(found[2]):
        raise InputError(f"a shard is written as 1/2, the first of two processes that share the work; got '{text}'.")
    return Shard(int(found[1]), int(found[2]))


def run(
    path: str | Path,
    out: str | Path | None = None,
    limit: int | None = None,
    resume: bool = False,
    progress: bool = True,
) -> Path:
    """Run a file of trainings, and return the folder with its records; see raison.studies.kinds.comparison.work.run.

    Raises StudyError with every mistake of the file, or of what its bases and data allow, before anything runs, and
    DataError for a folder that holds something else, or this study without `resume`.
    """
    study = read(path)
    folder = trainings_folder(study, out)
    check_trainings_folder(folder, study, limit, resume)
    return execute_trainings(examine_trainings(study, limit), folder, progress=progress)


def trainings_folder(study: TrainingStudy, out: str | Path | None) -> Path:
    """Where a study is written."""
    first = next(iter(study.tasks))
    return folder_of(study.as_study(first, first, ("random",), study.seeds[0]), out)


def check_trainings_folder(folder: Path, study: TrainingStudy, limit: int | None, resume: bool) -> None:
    """DataError unless the study may write here: the folder holds no study, or with `resume` this one."""
    check_goes_on(folder, TRAININGS, study.digest, limit, resume)


def examine_trainings(
    study: TrainingStudy, limit: int | None = None, recipes: Recipes | None = None
) -> ExaminedTrainings:
    """Load all data and every base in turn. Raises StudyError with all that stands in the way of any task."""
    data, found, bases = {}, [], {}
    for name, task in study.tasks.items():
        try:
            data[name] = load_task(task, limit)
        except RaisonError as error:
            found.append(f"[tasks.{name}]: {error}")
    for name, task in study.tasks.items():
        try:
            found += reasons(study, task, data, untrained(task))
            bases[name] = base_identity(task.base)
        except RaisonError as error:
            found.append(f"[tasks.{name}]: {error}")
    if found:
        raise StudyError(study.path, found)
    chosen = recipes or trainings_recipes.recipes()
    header = _header(study, chosen, limit, data)
    texts = {name: {DATA: digest_of(part.to_dict())} for name, part in data.items()}
    header[IDENTITY] = {**of_several(bases), **of_several(texts), SETTINGS: study.digest}
    return ExaminedTrainings(study, chosen, limit, data, header)


def execute_trainings(
    examined: ExaminedTrainings, folder: Path, shard: Shard | None = None, progress: bool = True
) -> Path:
    """Do what the folder lacks of this process's share, one task and seed after the other."""
    share = shard or Shard()
    number = share.number if share.count > 1 else None
    check_header(folder, TRAININGS, examined.header)
    with working_in(folder, TRAININGS, number):
        with beginning(folder, number):
            begin_study(folder, TRAININGS, examined.header, examined.study.text)
            write_labels(folder, {name: data.test for name, data in examined.data.items()}, {})
        _execute(examined, folder, share, progress)
    return folder


def _execute(examined: ExaminedTrainings, folder: Path, share: Shard, progress: bool) -> None:
    study = examined.study
    records, _ = read_records(folder)
    store = store_of(folder, share.number if share.count > 1 else None)
    shop = Workshop(study, examined.recipes, examined.data, folder, store, records, _teller(progress), bars=progress)
    pairs = [(task, seed) for seed in study.seeds for task in study.tasks.values()]
    for task, seed in pairs[share.number - 1 :: share.count]:
        do_pair(shop, task, seed)


def _teller(progress: bool) -> Callable[[str], None]:
    """Says what is being done, in a log as on a terminal; the bars between are those of training and explaining."""
    return _say if progress else lambda _step: None


def _say(step: str) -> None:
    sys.stderr.write(f"{step}\n")
    sys.stderr.flush()


def _header(study: TrainingStudy, recipes: Recipes, limit: int | None, data: Mapping[str, TaskData]) -> dict[str, Any]:
    """trainings.json, with methods and metrics written as the records do, so that readers need no catalogue."""
    header = {
        "schema": SCHEMA,
        "kind": KIND,
        "name": study.name,
        "digest": study.digest,
        "limit": limit,
        "seeds": study.seeds,
        "metrics": [asdict(info_of(metric)) for metric in create_metrics(study.metrics)],
        "tasks": [
            {"name": name, "base": task.base, "kind": task.kind, "also": task.also, "data": data[name].to_dict()}
            for name, task in study.tasks.items()
        ],
        "rows": _rows(study, recipes),
        "claims": study.claims,
        "gains": study.gains,
        "versions": {
            "raison": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in _LIBRARIES},
        },
    }
    # Through JSON: tuples and lists must not differ when it is compared with what a file holds.
    return dict(json.loads(json.dumps(header)))


def _rows(study: TrainingStudy, recipes: Recipes) -> list[dict[str, Any]]:
    plain = as_values(make(recipes.plain_settings, study.plain))
    rows = [_row((PLAIN, PLAIN, ""), plain, tuple(study.tasks))]
    rows += [_row((row.name, "posthoc", row.name), plain, row.tasks) for row in study.posthoc]
    for row in study.rows:
        settings = make(recipes.settings, row.settings)
        method = label_of(CATALOGUE.create(recipes.method(settings)))
        values = as_values(settings)
        rows.append(_row((row.name, "training", method), values, row.tasks))
        rows += [_row((row.named(other), "control", other), values, row.tasks) for other in row.controls]
    return rows


def _row(what: tuple[str, str, str], settings: dict[str, Any], tasks: tuple[str, ...]) -> dict[str, Any]:
    name, kind, method = what
    criteria = trainings_recipes.short_names(settings.get("criteria", ()))
    return {"name": name, "kind": kind, "method": method, "criteria": criteria, "settings": settings, "tasks": tasks}
