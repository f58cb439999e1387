"""From a file of trainings to data, models and plans, and all that only the models and the data can tell."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from raison.attribution import check as check_method
from raison.compare import Plan, header_of
from raison.core.errors import RaisonError
from raison.core.model import LanguageModel
from raison.data import Dataset
from raison.data.digest import dataset_digest
from raison.data.named import shared
from raison.methods import CATALOGUE
from raison.models.adapters.spans import answer_tokens, inside_window
from raison.models.loading import weights, zoo
from raison.models.loading.load import as_classifier, load
from raison.studies.kinds.trainings.spec import Task, TrainingStudy
from raison.studies.plans import load_rows, plan_of, reasons_against


@dataclass(frozen=True, slots=True)
class TaskData:
    """A task's rows. Labels are numbers in the order of the task's `labels`, which are the names in the data sets."""

    train: Dataset
    test: Dataset
    dev: Dataset | None

    def to_dict(self) -> dict[str, object]:
        """What names these rows, as plain JSON values."""
        parts = {"train": self.train, "dev": self.dev, "test": self.test}
        return {
            name: None if part is None else {"name": part.name, "rows": len(part), "sha256": dataset_digest(part)}
            for name, part in parts.items()
        }


def load_task(task: Task, limit: int | None) -> TaskData:
    """A task's data, at most `limit` rows of each part. Raises RaisonError."""
    dev = None if task.dev is None else _numbered(load_rows(task.dev, limit), task.labels)
    return TaskData(
        _numbered(load_rows(task.train, limit), task.labels), _numbered(load_rows(task.test, limit), task.labels), dev
    )


def untrained(task: Task, seed: int = 0) -> LanguageModel:
    """The task's base with a new head, to try everything on before anything is trained. Raises LoadError."""
    folder = weights.located(task.base)
    if task.kind == "spans":
        return as_classifier(load(*zoo.fresh_span_model(folder, seed)))
    return as_classifier(load(*zoo.fresh_classifier(folder, task.labels, seed)))


def trained(folder: Path) -> LanguageModel:
    """A model that a training has saved. Raises LoadError."""
    return as_classifier(load(folder))


@dataclass(frozen=True, slots=True)
class Asked:
    """What a model of `task` is asked: these methods, under a seed, on the data of `test`."""

    task: str
    test: str
    methods: tuple[str, ...]
    seed: int


def judging(study: TrainingStudy, asked: Asked, model: LanguageModel, data: Dataset) -> Plan:
    """The plan of a comparison of just these methods. Raises InputError where a target is not the model's."""
    whole = study.as_study(asked.task, asked.test, asked.methods, asked.seed)
    plan = plan_of(whole, model, (asked.task, asked.test), data)
    return replace(plan, rows=tuple(row for row in plan.rows if row.label in asked.methods))


def header_for(plan: Plan, name: str) -> dict[str, object]:
    """The header of a judgement; the model is called by its place in the study, wherever its folder is."""
    return {**header_of(plan), "model": name}


def reasons(study: TrainingStudy, task: Task, data: Mapping[str, TaskData], model: LanguageModel) -> list[str]:
    """Why a task cannot be, seen on its base before any training: methods, metrics, labels, texts that do not fit."""
    methods = [row.name for row in study.posthoc if task.name in row.tasks]
    found = []
    for method in methods:
        try:
            check_method(model, CATALOGUE.create(method))
        except RaisonError as error:
            found.append(f"[tasks.{task.name}]: {error}")
    for test in (test for test in task.tests if test in data):
        whole = study.as_study(task.name, test, tuple(methods) or ("random",), study.seeds[0])
        against = reasons_against(whole, model, (task.name, test), data[test].test)
        same = shared(data[task.name].train.name, data[test].test.name) if task.name in data else None
        against += [] if same is None else [same]
        found += [f"[tasks.{task.name}] on the test data of '{test}': {reason}" for reason in against]
    return list(dict.fromkeys(found))


def correct(model: LanguageModel, data: Dataset, truncate: bool) -> tuple[int, ...]:
    """1 for each text whose label, or one of whose answers with both its ends, is what the model predicts."""
    found = []
    for row in data.rows:
        # One at a time: a large data set's tokens need not be in memory together.
        encoding = model.encode([row.text], "token", truncate)
        # A model of answers was asked for its answer when it read the text.
        said = (model.predicted(encoding) if encoding.spans is None else encoding.spans)[0]
        if row.answers:
            there = [answer for answer in row.answers if inside_window(encoding, [answer])[0]]
            right = any(bool((said == answer_tokens(encoding, [answer])[0]).all()) for answer in there)
        else:
            right = int(said[0]) == row.label
        found.append(int(right))
    return tuple(found)


def _numbered(data: Dataset, labels: tuple[str, ...]) -> Dataset:
    """The data with labels as numbers of the task's; answers have none."""
    if not labels:
        return data
    numbers = data.class_indices(labels)
    rows = tuple(replace(row, label=number) for row, number in zip(data.rows, numbers, strict=True))
    return replace(data, rows=rows, labels=labels)
