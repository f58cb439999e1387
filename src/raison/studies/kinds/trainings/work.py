"""A study of trainings: its requirements, and its jobs, one for each task and seed."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from raison.core.errors import RaisonError
from raison.core.model import LanguageModel
from raison.core.registry import label_of
from raison.data.dataset import numbered
from raison.data.named import shared
from raison.explaining.measuring import create_metrics
from raison.jobs.engine import Job
from raison.jobs.identity import DATA, IDENTITY, SETTINGS, Identity, digest_of, of_one, of_several
from raison.jobs.origins import Origins
from raison.judging.evaluate import info_of
from raison.methods import CATALOGUE
from raison.models.derived.identity import base_identity, files_identity
from raison.models.loading.load import as_classifier, load
from raison.models.loading.ready_made import base_weights, zoo
from raison.report.tables.records import Cell, Table
from raison.studies import kind
from raison.studies.data_loading import load_rows
from raison.studies.file import Study, StudyError
from raison.studies.folder import header_of, versions
from raison.studies.kind import EstimateTable
from raison.studies.kinds.trainings.pair import TaskData, Workshop, do_pair, is_through
from raison.studies.kinds.trainings.recipes import Recipes, short_names
from raison.studies.kinds.trainings.records import PLAIN, STORE, read_records, store_of
from raison.studies.kinds.trainings.spec import Task, Trainings
from raison.studies.plans import checked_plan, unable
from raison.studies.settings import as_values, make

REUSED = (STORE,)
"""Stores whose records can be taken over from other folders."""


def load_task(task: Task, limit: int | None) -> TaskData:
    """A task's data, at most `limit` rows of each part. Raises RaisonError."""
    train, test = load_rows(task.train, limit), load_rows(task.test, limit)
    dev = None if task.dev is None else load_rows(task.dev, limit)
    train = train.counted_with(test, dev)
    judged = None if dev is None else numbered(dev.counted_with(train), task.labels)
    return TaskData(numbered(train, task.labels), numbered(test.counted_with(train), task.labels), judged)


def untrained(task: Task, seed: int = 0) -> LanguageModel:
    """The task's base with a new head, to check everything before anything is trained. Raises LoadError."""
    folder = base_weights.located(task.base)
    if task.kind == "spans":
        return as_classifier(load(*zoo.fresh_span_model(folder, seed)))
    return as_classifier(load(*zoo.fresh_classifier(folder, task.labels, seed)))


@dataclass(frozen=True, kw_only=True)
class Examined(kind.Examined):
    """A study that can be run: the data of its tasks, and its header. `files` are those that its metrics read."""

    data: Mapping[str, TaskData]
    files: Identity

    @cached_property
    def origins(self) -> Origins:
        """The origin of each record: the base, its data, the trainings, and how their models are judged."""
        spec, head = self.study.spec, self.header
        shared = [head["metrics"], dict(self.files), versions()]
        # A student's weights are read once for all of its rows.
        students = {name: base_identity(name) for name in {*map(_student, head["rows"])} if name}
        digests: dict[tuple[str, str, str, int], str] = {}
        for task in spec.tasks.values():
            learned = [task.kind, task.labels, of_one(head[IDENTITY], task.name), head["rows"][0]["settings"]]
            for test in task.tests:
                judged = [self.data[test].to_dict()["test"], asdict(spec.request(task, test, (), 0).settings)]
                for row in (row for row in head["rows"] if task.name in row["tasks"]):
                    made = [*(row[part] for part in ("kind", "method", "settings")), students.get(_student(row))]
                    digest = digest_of([shared, learned, judged, made])
                    digests |= {(task.name, test, row["name"], seed): digest_of([digest, seed]) for seed in spec.seeds}
        return Origins(("task", "test", "row", "seed"), digests)


def _student(row: Mapping[str, Any]) -> str:
    """The base from which a row's student starts; "" if it has none."""
    simulates = any(criterion.startswith("sim") for criterion in row["criteria"])
    return str(row["settings"]["student"]) if simulates else ""


def examine(study: Study, limit: int | None = None, _sources: Sequence[Path] = ()) -> Examined:
    """Load all data and every base in turn. Raises StudyError with every problem of any task."""
    data, reasons, bases = {}, [], {}
    files: dict[str, str] = {}
    metrics = create_metrics(study.spec.metrics)
    for name, task in study.spec.tasks.items():
        try:
            data[name] = load_task(task, limit)
        except RaisonError as error:
            reasons.append(f"[tasks.{name}]: {error}")
    for name, task in study.spec.tasks.items():
        try:
            model = untrained(task)
            reasons += _reasons(study.spec, task, data, model)
            bases[name] = base_identity(task.base)
            files |= files_identity(model, metrics)
        except RaisonError as error:
            reasons.append(f"[tasks.{name}]: {error}")
    if reasons:
        raise StudyError(study.path, reasons)
    header = _header(study, limit, data)
    texts = {name: {DATA: digest_of(part.to_dict())} for name, part in data.items()}
    header[IDENTITY] = {**of_several(bases), **of_several(texts), SETTINGS: study.digest}
    labels = {name: part.test for name, part in data.items()}
    return Examined(study=study, header=header, labels=labels, data=data, files=files)


def _reasons(spec: Trainings, task: Task, data: Mapping[str, TaskData], model: LanguageModel) -> list[str]:
    """Why a task is impossible, found on its base before any training: methods, metrics, labels, texts that do not
    fit."""
    methods = [row.name for row in spec.posthoc if task.name in row.tasks]
    wrong = unable(model, [CATALOGUE.create(method) for method in methods])
    reasons = [f"[tasks.{task.name}]: {reason}" for reason in wrong]
    for test in (test for test in task.tests if test in data):
        request = spec.request(task, test, methods or ("random",), spec.seeds[0])
        _, against = checked_plan(request, model, data[test].test)
        same = shared(data[task.name].train.name, data[test].test.name) if task.name in data else None
        against += () if same is None else (same,)
        reasons += [f"[tasks.{task.name}] on the test data of '{test}': {reason}" for reason in against]
    return list(dict.fromkeys(reasons))


def begin(examined: Examined, folder: Path, sources: Sequence[Path]) -> None:
    """Take over records."""
    examined.origins.take_over(store_of(folder), sources)


def jobs(examined: Examined, folder: Path, shard: int | None = None) -> list[Job]:
    """One job for each task and seed: a plain model, the methods that explain it, and every training that starts from
    it."""
    study, spec = examined.study, examined.study.spec
    records, _ = read_records(folder)
    shop = Workshop(study, examined.data, folder, store_of(folder, shard), examined.origins, records)
    return [
        Job(
            f"{task.name}, seed {seed}",
            "tasks and seeds",
            partial(do_pair, shop, task, seed),
            partial(is_through, shop, task, seed),
            cost=1.0 + sum(task.name in row.tasks for row in spec.rows),
        )
        for seed in spec.seeds
        for task in spec.tasks.values()
    ]


def estimate(examined: Examined) -> EstimateTable:
    """The numbers of models to train and of their texts."""
    spec, rows = examined.study.spec, []
    seeds = len(spec.seeds)
    for name, data in examined.data.items():
        trainings = sum(name in row.tasks for row in spec.rows)
        posthoc = sum(name in row.tasks for row in spec.posthoc)
        sizes = (len(data.train), len(data.dev) if data.dev else 0, len(data.test))
        counts = (*sizes, seeds, seeds * trainings, seeds * posthoc)
        rows.append((name, tuple(Cell(f"{count:,}") for count in counts)))
    head = ("task", "train", "dev", "test", "fine-tunings", "trainings", "post-hoc rows")
    values = {"tasks": examined.header["tasks"], "rows": examined.header["rows"]}
    return EstimateTable(Table("", head, tuple(rows)), (), values)


def _header(study: Study, limit: int | None, data: Mapping[str, TaskData]) -> dict[str, Any]:
    """trainings.json, with methods and metrics written as the records do, so that readers need no catalogue."""
    spec = study.spec
    return {
        **header_of(study, limit),
        "seeds": spec.seeds,
        "metrics": [asdict(info_of(metric)) for metric in create_metrics(spec.metrics)],
        "tasks": [
            {"name": name, "base": task.base, "kind": task.kind, "also": task.also, "data": data[name].to_dict()}
            for name, task in spec.tasks.items()
        ],
        "rows": _rows(spec, study.tools),
        "claims": [claim.to_dict() for claim in spec.claims],
        "gains": spec.gains,
    }


def _rows(spec: Trainings, tools: Recipes) -> list[dict[str, Any]]:
    plain = as_values(make(tools.plain_settings, spec.plain))
    rows = [_row(PLAIN, PLAIN, "", plain, tuple(spec.tasks))]
    rows += [_row(row.name, "posthoc", row.name, plain, row.tasks) for row in spec.posthoc]
    for row in spec.rows:
        settings = make(tools.settings, row.settings)
        method = label_of(CATALOGUE.create(tools.method(settings)))
        values = as_values(settings)
        rows.append(_row(row.name, "training", method, values, row.tasks))
        rows += [_row(row.named(other), "control", other, values, row.tasks) for other in row.controls]
    return rows


def _row(name: str, kind: str, method: str, settings: dict[str, Any], tasks: tuple[str, ...]) -> dict[str, Any]:
    criteria = short_names(settings.get("criteria", ()))
    return {"name": name, "kind": kind, "method": method, "criteria": criteria, "settings": settings, "tasks": tasks}
