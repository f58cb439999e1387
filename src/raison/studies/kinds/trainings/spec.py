"""The file of a study that trains the models that it compares.

    schema = 1
    kind = "trainings"
    title = "..."
    seeds = [0, 1, 2]
    metrics = ["aopc_comprehensiveness", "consistency"]
    [tasks.sst2]
    base = "minilm"
    labels = ["negative", "positive"]
    train = { source = "sst2", split = "train", limit = 400 }
    test = { source = "sst2", split = "test", limit = 96 }
    [training]
    epochs = 2
    [[trainings]]
    name = "IvRA {norm}, {criteria}"
    grid = { criteria = [["sim"], ["comp"]], norm = ["softmax", "sparsemax"] }
    [[posthoc]]
    methods = ["attention_average", "integrated_gradients"]

For each task and seed one plain model is fine-tuned; every training starts from it and is explained by the method that
it was trained for, and the post-hoc methods explain the plain model.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from raison.core.errors import RaisonError, UnknownNameError
from raison.core.registry import label_of
from raison.methods import CATALOGUE as METHODS
from raison.metrics import CATALOGUE as METRICS
from raison.studies import parts, schema
from raison.studies.entries import StudyData, StudyModel, StudySettings
from raison.studies.file import MistakesError, entries_of
from raison.studies.folder import Claim
from raison.studies.kinds.trainings import recipes
from raison.studies.kinds.trainings.recipes import Recipes
from raison.studies.kinds.trainings.records import PLAIN
from raison.studies.kinds.trainings.rows import KEYS as OWN
from raison.studies.kinds.trainings.rows import PosthocRow, TrainingRow, posthoc_rows, slug, training_rows
from raison.studies.kinds.trainings.tables import MEASURES
from raison.studies.parts import canonical_metric
from raison.studies.plans import Asked
from raison.studies.schema import Key, Keys, fitting
from raison.studies.settings import keys_of, mistakes_in

TASK_KINDS = ("classification", "spans")
PARTS = ("train", "dev", "test")
_COMPREHENSIVENESS = ("aopc_comprehensiveness", "comprehensiveness")
_SUFFICIENCY = ("aopc_sufficiency", "sufficiency")
CRITERIA = {
    "sim": ("simulatability",),
    "comp": _COMPREHENSIVENESS,
    "suff": _SUFFICIENCY,
    "suff_mae": _SUFFICIENCY,
    "suff_kl": _SUFFICIENCY,
    "cons": ("consistency",),
    "clust": ("consistency",),
}
"""Criteria, and the metrics that stand for them unless a study says otherwise."""

KEYS: Keys = {
    "seeds": Key(schema.SEEDS),
    "metrics": Key(schema.TEXTS, True),
    "keep": Key(schema.FLAG),
    "settings": Key(schema.TABLE),
    "tasks": Key(schema.TABLE, True),
    "plain": Key(schema.TABLE),
    "training": Key(schema.TABLE),
    "trainings": Key(schema.TABLES, True),
    "posthoc": Key(schema.TABLES),
    "controls": Key(schema.TEXTS),
    "gains": Key(schema.TABLE),
}
SETTINGS: Keys = {key: value for key, value in schema.SETTINGS.items() if key != "seeds"}
TASK: Keys = {
    "base": Key(schema.TEXT, True),
    "kind": Key(schema.TEXT),
    "labels": Key(schema.TEXTS),
    "train": Key(schema.TABLE, True),
    "dev": Key(schema.TABLE),
    "test": Key(schema.TABLE, True),
    "also": Key(schema.TEXTS),
    "even_at_chance": Key(schema.FLAG),
}
POSTHOC: Keys = {"methods": Key(schema.TEXTS, True), "tasks": Key(schema.TEXTS)}
CLAIM: Keys = {key: value for key, value in schema.CLAIM.items() if key != "run"} | {"task": Key(schema.TEXT)}
ROW: Keys = {
    "name": Key(schema.TEXT),
    "tasks": Key(schema.TEXTS),
    "grid": Key(schema.TABLE),
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class Task:
    """A base model and its data; `also` are tasks on whose test data this one's models are judged, too.

    `even_at_chance` trains explainers of a plain model that has hardly learned the task, too.
    """

    name: str
    base: str
    kind: str
    labels: tuple[str, ...]
    train: StudyData
    test: StudyData
    dev: StudyData | None = None
    also: tuple[str, ...] = ()
    even_at_chance: bool = False

    @property
    def tests(self) -> tuple[str, ...]:
        """The tasks on whose data this one's models are judged, its own first."""
        return (self.name, *self.also)


@dataclass(frozen=True, slots=True)
class Trainings:
    """A file without mistakes. `claims` and `gains` name metrics and rows as the records do."""

    seeds: tuple[int, ...]
    metrics: tuple[str, ...]
    keep: bool
    settings: StudySettings
    tasks: Mapping[str, Task]
    plain: Mapping[str, Any]
    rows: tuple[TrainingRow, ...]
    posthoc: tuple[PosthocRow, ...]
    claims: tuple[Claim, ...]
    gains: Mapping[str, str]

    def asked(self, task: Task, test: str, methods: Sequence[str], seed: int) -> Asked:
        """What is asked of one model of a task on the data of `test`."""
        unit = self.tasks[test].test.unit or self.settings.unit
        settings = replace(self.settings, unit=unit, seeds=(seed,))
        return Asked(task.name, StudyModel(task.base, task.labels), tuple(methods), self.metrics, settings)


def tools() -> Recipes:
    """The trainings of raison.training."""
    return recipes.recipes()


def parse(table: Mapping[str, Any], place: Path, made: Recipes) -> Trainings:
    """A parsed file in the folder `place`. Raises MistakesError with every mistake in it."""
    study, mistakes = entries_of(table, KEYS)
    tasks = {name: task for name, task in study.get("tasks", {}).items() if isinstance(task, dict)}
    mistakes += _tasks(study.get("tasks"))
    settings, wrong = fitting(study.get("settings", {}), SETTINGS, "[settings]")
    mistakes += wrong + parts.settings_mistakes(settings)
    if "seeds" in table.get("settings", {}):
        mistakes.append("[settings]: seeds are the whole study's: write seeds = [...] at the top of the file.")
    metrics, wrong = parts.labels_in(study["metrics"], "metrics", METRICS) if "metrics" in study else (None, [])
    mistakes += wrong + mistakes_in(made.plain_settings, study.get("plain", {}), "[plain]")
    rows, wrong = _rows(study, tuple(tasks), made)
    mistakes += wrong + _gains(study.get("gains", {}), metrics)
    known = _Known(rows, metrics, tuple(tasks))
    for number, claim in enumerate(study.get("claims", ()), start=1):
        mistakes += _claim(claim, f"[[claims]] number {number}", known)
    if mistakes:
        raise MistakesError(mistakes)
    return _read(table, place)


def _read(table: Mapping[str, Any], place: Path) -> Trainings:
    tasks = {name: _task_of(name, entry, place) for name, entry in table["tasks"].items()}
    rows = training_rows(table["trainings"], table.get("training", {}), tuple(tasks), table.get("controls", ()))
    seeds = tuple(table.get("seeds", (0,)))
    named = [name for row in rows for name in (row.name, *(row.named(control) for control in row.controls))]
    claims = [
        parts.claim_of(entry, lambda label: canonical_row(label, named))
        | {"metric": canonical_measure(entry["metric"])}
        for entry in table.get("claims", ())
    ]
    return Trainings(
        seeds=seeds,
        metrics=tuple(table["metrics"]),
        keep=table.get("keep", False),
        settings=parts.settings_of(table, seeds),
        tasks=tasks,
        plain=table.get("plain", {}),
        rows=tuple(rows),
        posthoc=tuple(posthoc_rows(table.get("posthoc", ()), tuple(tasks))),
        claims=tuple(claims),
        gains=gains_of(table),
    )


def _task_of(name: str, entry: Mapping[str, Any], folder: Path) -> Task:
    # A study that brings its base along can be run from anywhere.
    beside = folder / entry["base"]
    return Task(
        name=name,
        base=str(beside) if beside.is_dir() else entry["base"],
        kind=entry.get("kind", "classification"),
        labels=tuple(entry.get("labels", ())),
        train=parts.data_of(entry["train"], folder),
        test=parts.data_of(entry["test"], folder),
        dev=parts.data_of(entry["dev"], folder) if "dev" in entry else None,
        also=tuple(entry.get("also", ())),
        even_at_chance=entry.get("even_at_chance", False),
    )


@dataclass(frozen=True, slots=True)
class _Known:
    """What a claim may name; None where mistakes elsewhere leave it unknown."""

    rows: set[str] | None
    metrics: set[str] | None
    tasks: tuple[str, ...]


def canonical_row(label: str, trainings: Sequence[str]) -> str:
    """A row's name as the records write it. Raises InputError for a method that does not exist."""
    return label if label == PLAIN or label in trainings else label_of(METHODS.create(label))


def canonical_measure(label: str) -> str:
    """A metric's label as the records write it, or what else is known of every row. Raises InputError."""
    return label if label in MEASURES else canonical_metric(label)


def gains_of(study: Mapping[str, Any]) -> dict[str, str]:
    """The metric that stands for each criterion, as the records write it; those that have none are left out."""
    if "gains" in study:
        return {criterion: canonical_metric(metric) for criterion, metric in study["gains"].items()}
    labels = [canonical_metric(metric) for metric in study["metrics"]]
    metrics = {}
    for criterion, names in CRITERIA.items():
        standing = [label for name in names for label in labels if label.partition("(")[0] == name]
        metrics.update({criterion: standing[0]} if standing else {})
    return metrics


def _tasks(tasks: Mapping[str, Any] | None) -> list[str]:
    if tasks is None:
        return []
    mistakes = [] if tasks else ["[tasks]: it is empty; add one table [tasks.NAME]."]
    for name, task in tasks.items():
        where = f"[tasks.{name}]"
        if not _NAME.fullmatch(name):
            mistakes.append(f"{where}: a name here is made of letters, digits, - _ . for it names a folder.")
        if not isinstance(task, dict):
            mistakes.append(f"{where}: it is {task!r:.80}; give a table.")
            continue
        fit, wrong = fitting(task, TASK, where)
        mistakes += wrong + _task(name, fit, tasks)
        for part in (part for part in PARTS if part in fit):
            data, wrong = fitting(fit[part], schema.DATA, f"[tasks.{name}.{part}]")
            mistakes += wrong + parts.data_mistakes(data, f"[tasks.{name}.{part}]")
    return mistakes


def _task(name: str, task: Mapping[str, Any], tasks: Mapping[str, Any]) -> list[str]:
    where, mistakes = f"[tasks.{name}]", []
    kind, labels = task.get("kind", TASK_KINDS[0]), task.get("labels", [])
    if kind not in TASK_KINDS:
        mistakes.append(f"{where}: {UnknownNameError('kind of task', kind, TASK_KINDS)}")
    elif kind == "spans" and labels:
        mistakes.append(f"{where}: labels belong to classification; leave them out for spans.")
    elif kind == "classification" and len({label.lower() for label in labels}) < max(2, len(labels)):
        mistakes.append(f"{where}: labels names the classes, at least two and each once; got {labels}.")
    for other in task.get("also", ()):
        if other == name or other not in tasks:
            known = [key for key in tasks if key != name]
            mistakes.append(f"{where}: also: {UnknownNameError('other task', other, known)}")
        elif isinstance(tasks[other], dict) and _fitted(tasks[other]) != (kind, labels):
            mistakes.append(
                f"{where}: also: the kind or the labels of '{other}' are others; its data cannot be judged."
            )
    return mistakes


def _fitted(task: Mapping[str, Any]) -> tuple[str, list[str]]:
    return task.get("kind", TASK_KINDS[0]), task.get("labels", [])


def _texts(value: Any) -> list[str]:
    return value if schema.TEXTS.fits(value) else []


def _rows(study: Mapping[str, Any], tasks: tuple[str, ...], made: Recipes) -> tuple[set[str] | None, list[str]]:
    """The names of all rows, None where they cannot be told, and what is wrong with [[trainings]] and [[posthoc]]."""
    common = study.get("training", {})
    mistakes = [f"[training]: {key} is set in [[trainings]]." for key in common if key in OWN]
    rows: list[TrainingRow] = []
    for number, entry in enumerate(study.get("trainings", ()), start=1):
        where = f"[[trainings]] number {number}"
        wrong = _entry(entry, where, tasks, made)
        try:
            spread = [] if wrong else training_rows([entry], common, tasks, _texts(study.get("controls", [])))
        except RaisonError as error:
            wrong, spread = [f"{where}: {error}"], []
        for row in spread:
            wrong += mistakes_in(made.settings, row.settings, f"{where} ('{row.name}')")
        rows += spread
        # A grid repeats what is wrong with all its rows.
        mistakes += wrong[:3]
    if study.get("trainings") == []:
        mistakes.append("[[trainings]]: the list is empty; add one.")
    posthoc, wrong = _posthoc(study, tasks)
    mistakes += wrong + _twice(rows, posthoc or [])
    if mistakes or posthoc is None:
        return None, mistakes
    controls = {row.named(control) for row in rows for control in row.controls}
    return {PLAIN, *(row.name for row in rows), *controls, *(row.name for row in posthoc)}, mistakes


def _entry(entry: Mapping[str, Any], where: str, tasks: tuple[str, ...], made: Recipes) -> list[str]:
    _, mistakes = fitting({key: value for key, value in entry.items() if key in ROW}, ROW, where)
    mistakes += _unknown_tasks(entry, where, tasks)
    grid = entry.get("grid", {})
    known = keys_of(made.settings)
    if not isinstance(grid, dict):
        return mistakes
    for key, values in grid.items():
        if key not in known:
            mistakes.append(f"{where} grid: {UnknownNameError('key', key, known)}")
        elif not isinstance(values, list) or not values:
            mistakes.append(f"{where} grid: {key} is {values!r:.80}; give a list of values.")
    return mistakes


def _unknown_tasks(entry: Mapping[str, Any], where: str, tasks: tuple[str, ...]) -> list[str]:
    named = _texts(entry.get("tasks", []))
    return [f"{where}: {UnknownNameError('task', name, tasks)}" for name in named if name not in tasks]


def _posthoc(study: Mapping[str, Any], tasks: tuple[str, ...]) -> tuple[list[PosthocRow] | None, list[str]]:
    mistakes = []
    for number, entry in enumerate(study.get("posthoc", ()), start=1):
        where = f"[[posthoc]] number {number}"
        mistakes += fitting(entry, POSTHOC, where)[1] + _unknown_tasks(entry, where, tasks)
    if mistakes:
        return None, mistakes
    specs = [spec for entry in study.get("posthoc", ()) for spec in entry["methods"]]
    wrong = parts.labels_in(specs, "[[posthoc]]: methods", METHODS, empty=True)[1]
    return (None, wrong) if wrong else (posthoc_rows(study.get("posthoc", ()), tasks), [])


def _twice(rows: Sequence[TrainingRow], posthoc: Sequence[PosthocRow]) -> list[str]:
    names = [PLAIN, *(row.name for row in posthoc), *(row.name for row in rows)]
    mistakes = [f"the row '{name}' is named twice." for name in dict.fromkeys(names) if names.count(name) > 1]
    folders = [row.folder for row in rows]
    mistakes += [
        f"the row '{row.name}' has the same folder as another one, '{row.folder}': give it another name."
        for row in rows
        if names.count(row.name) == 1 and (folders.count(row.folder) > 1 or row.folder.startswith(slug(PLAIN) + "-"))
    ]
    return mistakes


def _gains(gains: Mapping[str, Any], metrics: set[str] | None) -> list[str]:
    mistakes = [f"[gains]: {UnknownNameError('criterion', key, CRITERIA)}" for key in gains if key not in CRITERIA]
    for key, metric in gains.items():
        try:
            if metrics is not None and canonical_metric(str(metric)) not in metrics:
                mistakes.append(f"[gains] {key}: {UnknownNameError('metric', metric, metrics)}")
        except RaisonError as error:
            mistakes.append(f"[gains] {key}: {error}")
    return mistakes


def _claim(table: Mapping[str, Any], where: str, known: _Known) -> list[str]:
    fit, mistakes = fitting(table, CLAIM, where)
    mistakes += parts.sides_mistakes(table, where)
    rows = []
    for label in parts.rows_named(fit) if known.rows is not None else []:
        there = known.rows or set()
        try:
            rows.append(canonical_row(label, [*there]))
        except RaisonError:
            rows.append(label)
        if rows[-1] not in there:
            mistakes.append(f"{where}: {UnknownNameError('row', label, there)}")
    if len(set(rows)) < len(rows):
        mistakes.append(f"{where}: it compares {rows[0]} with itself.")
    if "metric" in fit and known.metrics is not None:
        try:
            is_known = canonical_measure(fit["metric"]) in known.metrics | set(MEASURES)
        except RaisonError:
            is_known = False
        if not is_known:
            mistakes.append(f"{where}: {UnknownNameError('metric', fit['metric'], known.metrics | set(MEASURES))}")
    if "task" in fit and fit["task"] not in known.tasks:
        mistakes.append(f"{where}: {UnknownNameError('task', fit['task'], known.tasks)}")
    return mistakes
