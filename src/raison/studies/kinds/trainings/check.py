"""Everything that is wrong with the file of a study of trainings, before a model or a data set is touched."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from raison.core.errors import RaisonError, UnknownNameError
from raison.core.registry import label_of
from raison.methods import CATALOGUE as METHODS
from raison.metrics import CATALOGUE as METRICS
from raison.studies import schema as shape
from raison.studies.kinds.comparison import check as studies
from raison.studies.kinds.trainings.keys import CLAIM, CRITERIA, PARTS, POSTHOC, ROW, STUDY, TASK, TASK_KINDS
from raison.studies.kinds.trainings.recipes import Recipes, keys_of, mistakes_in
from raison.studies.kinds.trainings.results import KIND, PLAIN, SCHEMA
from raison.studies.kinds.trainings.rows import KEYS, PosthocRow, TrainingRow, posthoc_rows, slug, training_rows
from raison.studies.kinds.trainings.tables import MEASURES
from raison.studies.schema import fitting

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class _Known:
    """What a claim may name; None where mistakes elsewhere leave it unknown."""

    rows: set[str] | None
    metrics: set[str] | None
    tasks: tuple[str, ...]


def check(table: Mapping[str, Any], recipes: Recipes) -> list[str]:
    """One line for each mistake in a parsed file; none if it can be run as far as the file alone tells."""
    study, mistakes = fitting(table, STUDY, "the study")
    if study.get("schema", SCHEMA) != SCHEMA:
        return [f"the study: schema is {study['schema']}, and this version of raison reads {SCHEMA}."]
    tasks = {name: task for name, task in study.get("tasks", {}).items() if isinstance(task, dict)}
    mistakes += _tasks(study.get("tasks"))
    mistakes += _as_other_studies(study, tasks)
    mistakes += mistakes_in(recipes.plain_settings, study.get("plain", {}), "[plain]")
    rows, wrong = _rows(study, tuple(tasks), recipes)
    mistakes += wrong
    metrics = None if any(line.startswith("metrics") for line in mistakes) else _metrics(study)
    known = _Known(rows, metrics, tuple(tasks))
    mistakes += _gains(study.get("gains", {}), metrics)
    for number, claim in enumerate(study.get("claims", ()), start=1):
        mistakes += _claim(claim, f"[[claims]] number {number}", known)
    return mistakes


def canonical_row(label: str, trainings: Sequence[str]) -> str:
    """A row's name as the records write it. Raises InputError for a method that does not exist."""
    return label if label == PLAIN or label in trainings else label_of(METHODS.create(label))


def canonical_measure(label: str) -> str:
    """A metric's label as the records write it, or what else is known of every row. Raises InputError."""
    return label if label in MEASURES else studies.canonical_metric(label)


def gains_of(study: Mapping[str, Any]) -> dict[str, str]:
    """The metric that stands for each criterion, as the records write it; those that have none are left out."""
    if "gains" in study:
        return {criterion: studies.canonical_metric(metric) for criterion, metric in study["gains"].items()}
    labels = [studies.canonical_metric(metric) for metric in study["metrics"]]
    found = {}
    for criterion, names in CRITERIA.items():
        standing = [label for name in names for label in labels if label.partition("(")[0] == name]
        found.update({criterion: standing[0]} if standing else {})
    return found


def _metrics(study: Mapping[str, Any]) -> set[str]:
    return {label_of(METRICS.create(metric)) for metric in study.get("metrics", ())}


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


def _as_other_studies(study: Mapping[str, Any], tasks: Mapping[str, Any]) -> list[str]:
    """What is wrong with metrics, settings, methods and data, in the words of studies of models that exist."""
    # Numbers for names: whatever is wrong with a task's name is said once, elsewhere.
    places = {
        f"t{number}.{part}": (f"[tasks.{name}.{part}]", task[part])
        for number, (name, task) in enumerate(tasks.items())
        for part in PARTS
        if isinstance(task.get(part), dict)
    }
    methods = [spec for entry in study.get("posthoc", ()) for spec in _texts(entry.get("methods"))]
    table = {
        "schema": SCHEMA,
        "title": "-",
        "methods": methods or ["random"],
        "metrics": study.get("metrics", ["entropy"]),
        "settings": study.get("settings", {}),
        "models": {"m": {"name": "-"}},
        "data": {key: entry for key, (_, entry) in places.items()} or {"d": {"source": "-"}},
    }
    found = studies.check(table)
    if "seeds" in study.get("settings", {}):
        found.append("[settings]: seeds are the whole study's: write seeds = [...] at the top of the file.")
    for key, (where, _) in places.items():
        found = [line.replace(f"[data.{key}]", where) for line in found]
    return [line.replace("methods:", "[[posthoc]]: methods:", 1) if line[:8] == "methods:" else line for line in found]


def _texts(value: Any) -> list[str]:
    return value if shape.TEXTS.fits(value) else []


def _rows(study: Mapping[str, Any], tasks: tuple[str, ...], recipes: Recipes) -> tuple[set[str] | None, list[str]]:
    """The names of all rows, None where they cannot be told, and what is wrong with [[trainings]] and [[posthoc]]."""
    common = study.get("training", {})
    mistakes = [line for key in common if key in KEYS for line in [f"[training]: {key} is set in [[trainings]]."]]
    rows: list[TrainingRow] = []
    for number, entry in enumerate(study.get("trainings", ()), start=1):
        where = f"[[trainings]] number {number}"
        wrong = _entry(entry, where, tasks, recipes)
        try:
            spread = [] if wrong else training_rows([entry], common, tasks, _texts(study.get("controls", [])))
        except RaisonError as error:
            wrong, spread = [f"{where}: {error}"], []
        for row in spread:
            wrong += mistakes_in(recipes.settings, row.settings, f"{where} ('{row.name}')")
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


def _entry(entry: Mapping[str, Any], where: str, tasks: tuple[str, ...], recipes: Recipes) -> list[str]:
    _, mistakes = fitting({key: value for key, value in entry.items() if key in ROW}, ROW, where)
    mistakes += _unknown_tasks(entry, where, tasks)
    grid = entry.get("grid", {})
    known = keys_of(recipes.settings)
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
    try:
        return posthoc_rows(study.get("posthoc", ()), tasks), []
    except RaisonError:
        # Said in the words of other studies already.
        return None, []


def _twice(rows: Sequence[TrainingRow], posthoc: Sequence[PosthocRow]) -> list[str]:
    names = [PLAIN, *(row.name for row in posthoc), *(row.name for row in rows)]
    found = [f"the row '{name}' is named twice." for name in dict.fromkeys(names) if names.count(name) > 1]
    folders = [row.folder for row in rows]
    found += [
        f"the row '{row.name}' has the same folder as another one, '{row.folder}': give it another name."
        for row in rows
        if names.count(row.name) == 1 and (folders.count(row.folder) > 1 or row.folder.startswith(slug(PLAIN) + "-"))
    ]
    return found


def _gains(gains: Mapping[str, Any], metrics: set[str] | None) -> list[str]:
    mistakes = [f"[gains]: {UnknownNameError('criterion', key, CRITERIA)}" for key in gains if key not in CRITERIA]
    for key, metric in gains.items():
        try:
            if metrics is not None and studies.canonical_metric(str(metric)) not in metrics:
                mistakes.append(f"[gains] {key}: {UnknownNameError('metric', metric, metrics)}")
        except RaisonError as error:
            mistakes.append(f"[gains] {key}: {error}")
    return mistakes


def _claim(table: Mapping[str, Any], where: str, known: _Known) -> list[str]:
    fit, mistakes = fitting(table, CLAIM, where)
    if ("above" in table) == ("below" in table):
        mistakes.append(f"{where}: give one of above and below.")
    named = [fit[key] for key in ("above", "below", "than") if isinstance(fit.get(key), str)]
    rows = []
    for label in named if known.rows is not None else []:
        try:
            rows.append(canonical_row(label, [*known.rows]))
        except RaisonError:
            rows.append(label)
        if rows[-1] not in known.rows:
            mistakes.append(f"{where}: {UnknownNameError('row', label, known.rows)}")
    if len(set(rows)) < len(rows):
        mistakes.append(f"{where}: it compares {rows[0]} with itself.")
    if "metric" in fit and known.metrics is not None:
        try:
            there = canonical_measure(fit["metric"]) in known.metrics | set(MEASURES)
        except RaisonError:
            there = False
        if not there:
            mistakes.append(f"{where}: {UnknownNameError('metric', fit['metric'], known.metrics | set(MEASURES))}")
    if "task" in fit and fit["task"] not in known.tasks:
        mistakes.append(f"{where}: {UnknownNameError('task', fit['task'], known.tasks)}")
    return mistakes


def is_kind(table: Mapping[str, Any]) -> bool:
    """Whether a parsed study file says which trainings to make."""
    return table.get("kind") == KIND
