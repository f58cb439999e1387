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
    [examples]
    texts = 6

For each task and seed one plain model is fine-tuned; every training starts from it and is explained by the method that
it was trained for, and the post-hoc methods explain the plain model.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from raison.core.errors import RaisonError
from raison.core.registry import label_of
from raison.core.settings.fields import fields_of
from raison.core.settings.tables import FLAT, KEY, TableReading, read
from raison.methods import CATALOGUE as METHODS
from raison.metrics import CATALOGUE as METRICS
from raison.report.pages.examples import ExamplesAsked
from raison.runs.headers import Seeds
from raison.studies import parts
from raison.studies.entries import About, StudyData, StudyModel, StudySettings
from raison.studies.file import MistakesError, entries_of
from raison.studies.kinds.trainings import recipes
from raison.studies.kinds.trainings.grids import (
    PosthocRow,
    PosthocTable,
    TrainingRow,
    TrainingTable,
    posthoc_rows,
    training_rows,
)
from raison.studies.kinds.trainings.recipes import Recipes
from raison.studies.kinds.trainings.records import PLAIN, MeasureClaim, slug
from raison.studies.kinds.trainings.tables import ACCURACY, MEASURES, TRAINING
from raison.studies.parts import ClaimNames, canonical_metric, claim_of, unknown
from raison.studies.plans import RunRequest

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
"""Criteria and their default metrics."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_DECIDED = {
    "seed": "seed cannot be set here: use seeds = [...] at the top of the file.",
    "progress": "progress cannot be set here: leave it out.",
}
"""Settings that the study decides."""
_SEEDS = {"seeds": "seeds are the whole study's: write seeds = [...] at the top of the file."}


@dataclass(frozen=True, slots=True)
class Task:
    """A base model and its data; `also` are other tasks on whose test data this one's models are evaluated.

    `even_at_chance` also trains explainers of a plain model that has hardly learned the task.
    """

    name: Annotated[str, KEY]
    base: str
    train: StudyData
    test: StudyData
    kind: Literal["classification", "spans"] = "classification"
    labels: tuple[str, ...] = ()
    dev: StudyData | None = None
    also: tuple[str, ...] = ()
    even_at_chance: bool = False

    @property
    def tests(self) -> tuple[str, ...]:
        """The tasks on whose data this one's models are judged, its own first."""
        return (self.name, *self.also)

    def beside(self, folder: Path) -> "Task":
        """The task with paths of base and data relative to the study's folder, wherever it is run."""
        base = folder / self.base
        return replace(
            self,
            base=str(base) if base.is_dir() else self.base,
            train=parts.beside(folder, self.train),
            test=parts.beside(folder, self.test),
            dev=None if self.dev is None else parts.beside(folder, self.dev),
        )


@dataclass(frozen=True, slots=True)
class TrainingsFile:
    """The file. `plain` and `training` are settings of the recipes."""

    about: Annotated[About, FLAT]
    metrics: tuple[str, ...]
    tasks: Mapping[str, Task]
    trainings: tuple[TrainingTable, ...]
    seeds: Seeds = (0,)
    keep: bool = False
    settings: Annotated[StudySettings, TableReading(without=_SEEDS)] = StudySettings()  # noqa: RUF009
    plain: Mapping[str, Any] = field(default_factory=dict)
    training: Mapping[str, Any] = field(default_factory=dict)
    posthoc: tuple[PosthocTable, ...] = ()
    controls: tuple[str, ...] = ()
    gains: Mapping[str, str] | None = None
    examples: ExamplesAsked | None = None
    claims: tuple[MeasureClaim, ...] = ()


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
    claims: tuple[MeasureClaim, ...]
    gains: Mapping[str, str]

    def request(self, task: Task, test: str, methods: Sequence[str], seed: int) -> RunRequest:
        """The request for one model of a task on the data of `test`."""
        unit = self.tasks[test].test.unit or self.settings.unit
        settings = replace(self.settings, unit=unit, seeds=(seed,))
        return RunRequest(task.name, StudyModel(task.base, task.labels), tuple(methods), self.metrics, settings)


def tools() -> Recipes:
    """The trainings of raison.training."""
    return recipes.recipes()


def parse(table: Mapping[str, Any], place: Path, made: Recipes) -> Trainings:
    """A parsed file in the folder `place`. Raises MistakesError with every mistake in it."""
    file, mistakes = entries_of(TrainingsFile, table)
    if table.get("tasks") == {}:
        mistakes.append("[tasks]: it is empty; add one table [tasks.NAME].")
    for task in file.tasks.values():
        mistakes += _task(task, file.tasks)
    metrics, wrong = parts.labels_in(file.metrics, "metrics", METRICS, empty=parts.unread(table, "metrics"))
    mistakes += parts.settings_mistakes(file.settings) + wrong
    mistakes += read(made.plain_settings, file.plain, "[plain]", without=_DECIDED)[1]
    rows, wrong = _rows(file, made)
    mistakes += wrong
    posthoc, wrong = _posthoc(file)
    mistakes += wrong + _twice(rows or [], posthoc or []) + _gains(file.gains or {}, metrics)
    trained = [] if rows is None else [name for row in rows for name in (row.name, *map(row.named, row.controls))]
    names = None if rows is None or posthoc is None else {PLAIN, *trained, *(row.name for row in posthoc)}
    on = {one.name: one.tasks for one in posthoc or ()} | {PLAIN: (*file.tasks,)}
    on |= {name: row.tasks for row in rows or () for name in (row.name, *map(row.named, row.controls))}
    measured = metrics | set(MEASURES) if metrics else None
    written = _or_itself(partial(canonical_row, trainings=trained))
    known = ClaimNames(
        {"row": names, "metric": measured, "task": file.tasks or None},
        {"row": written, "metric": _or_itself(canonical_measure)},
        {"row": "a list of methods in [[posthoc]]", "metric": "metrics"},
    )
    mistakes += parts.examples_mistakes(file.examples, names and names - {PLAIN}, written)
    for where, claim in parts.read_claims(file.claims, mistakes):
        mistakes += known.rows(claim, where, "row")
        wrong = known.name(where, "metric", claim.metric) + known.name(where, "task", claim.task)
        mistakes += wrong or _unmeasured(claim, where, [*map(written, claim.labels)], on)
    if table.get("trainings") == []:
        mistakes.append("[[trainings]]: the list is empty; add one.")
    if mistakes or rows is None or posthoc is None:
        raise MistakesError(mistakes)
    claims = (claim_of(one, partial(canonical_row, trainings=trained)) for one in file.claims)
    return Trainings(
        file.seeds,
        file.metrics,
        file.keep,
        replace(file.settings, seeds=file.seeds),
        {name: task.beside(place) for name, task in file.tasks.items()},
        file.plain,
        tuple(rows),
        tuple(posthoc),
        tuple(replace(one, metric=canonical_measure(one.metric)) for one in claims),
        gains_of(file),
    )


def canonical_row(label: str, trainings: Sequence[str]) -> str:
    """A row's name as the records write it. Raises InputError for a method that does not exist."""
    return label if label == PLAIN or label in trainings else label_of(METHODS.create(label))


def canonical_measure(label: str) -> str:
    """A metric's label as the records write it, or another measure of every row. Raises InputError."""
    return label if label in MEASURES else canonical_metric(label)


def gains_of(file: TrainingsFile) -> dict[str, str]:
    """The metric of each criterion, as the records write it; criteria without one are left out."""
    if file.gains is not None:
        return {criterion: canonical_metric(metric) for criterion, metric in file.gains.items()}
    labels = [canonical_metric(metric) for metric in file.metrics]
    metrics = {}
    for criterion, names in CRITERIA.items():
        standing = [label for name in names for label in labels if label.partition("(")[0] == name]
        metrics.update({criterion: standing[0]} if standing else {})
    return metrics


def _or_itself(canonical: Callable[[str], str]) -> Callable[[str], str]:
    """An unknown name stays as it is: it may be a misspelt row or measure instead of a method or metric."""

    def written(label: str) -> str:
        try:
            return canonical(label)
        except RaisonError:
            return label

    return written


def _task(task: Task, tasks: Mapping[str, Task]) -> list[str]:
    where, mistakes = f"[tasks.{task.name}]", []
    if not _NAME.fullmatch(task.name):
        mistakes.append(f"{where}: a name may contain only letters, digits and - _ . because it names a folder.")
    if task.kind == "spans" and task.labels:
        mistakes.append(f"{where}: labels belong to classification; leave them out for spans.")
    elif task.kind == "classification" and len({label.lower() for label in task.labels}) < max(2, len(task.labels)):
        mistakes.append(f"{where}: labels must name at least two different classes; got {[*task.labels]}.")
    others = {name: other for name, other in tasks.items() if other is not task}
    for name in task.also:
        mistakes += unknown(where, "other task", name, others)
        if name in others and (others[name].kind, others[name].labels) != (task.kind, task.labels):
            mistakes.append(f"{where}: also: '{name}' has another kind or other labels, so its data cannot be used.")
    for part, data in {"train": task.train, "dev": task.dev, "test": task.test}.items():
        mistakes += [] if data is None else parts.data_mistakes(data, f"[tasks.{task.name}.{part}]")
    return mistakes


def _rows(file: TrainingsFile, made: Recipes) -> tuple[list[TrainingRow] | None, list[str]]:
    """The rows of all trainings, None if they are unknown, and the mistakes in [[trainings]]."""
    mistakes = [
        f"[training]: {key} is set in [[trainings]]." for key in ("name", "tasks", "grid") if key in file.training
    ]
    beside, wrong = parts.labels_in(file.controls, "controls", METHODS, empty=True)
    mistakes += wrong
    rows: list[TrainingRow] = []
    for number, entry in enumerate(file.trainings, start=1):
        where = f"[[trainings]] number {number}"
        wrong = [line for name in entry.tasks or () for line in unknown(where, "task", name, file.tasks)]
        wrong += _grid(entry, f"{where} grid", made)
        try:
            controls = file.controls if beside else ()
            spread = [] if wrong else training_rows([entry], file.training, [*file.tasks], controls)
        except RaisonError as error:
            wrong, spread = [f"{where}: {error}"], []
        for row in spread:
            settings: Any
            settings, unread = read(made.settings, row.settings, f"{where} ('{row.name}')", without=_DECIDED)
            wrong += unread or _own_control(row, made.method(settings))
        rows += spread
        # A grid repeats mistakes that all its rows share.
        mistakes += wrong[:3]
    return (None if mistakes or not rows else rows), mistakes


def _own_control(row: TrainingRow, method: str) -> list[str]:
    """The mistake of a control that explains the trained model as the row itself does."""
    label = label_of(METHODS.create(method))
    return [f"controls: the row '{row.name}' itself is explained by {label}; remove it."] * (label in row.controls)


def _grid(entry: TrainingTable, where: str, made: Recipes) -> list[str]:
    known = [name for name in fields_of(made.settings) if name not in _DECIDED]
    mistakes = [line for key in entry.grid for line in unknown(where, "key", key, known)]
    return mistakes + [
        f"{where}: {key} is {values!r:.80}; give a list of values."
        for key, values in entry.grid.items()
        if key in known and (not isinstance(values, list) or not values)
    ]


def _posthoc(file: TrainingsFile) -> tuple[list[PosthocRow] | None, list[str]]:
    mistakes = []
    for number, entry in enumerate(file.posthoc, start=1):
        for name in entry.tasks or ():
            mistakes += unknown(f"[[posthoc]] number {number}", "task", name, file.tasks)
    specs = [spec for entry in file.posthoc for spec in entry.methods]
    mistakes += parts.labels_in(specs, "[[posthoc]]: methods", METHODS, empty=True)[1]
    return (None, mistakes) if mistakes else (posthoc_rows(file.posthoc, [*file.tasks]), [])


def _unmeasured(claim: MeasureClaim, where: str, rows: Sequence[str], on: Mapping[str, Sequence[str]]) -> list[str]:
    """What no record will have of a claim whose names are right; `on` are the tasks of each row."""
    if PLAIN in rows and claim.metric not in (ACCURACY, TRAINING):
        return [f"{where}: {PLAIN} is a model without explanations: compare its {ACCURACY} or its {TRAINING}."]
    shared = set.intersection(*({*on[row]} for row in rows if row in on), {*on[PLAIN]})
    if shared and claim.task in (None, *shared):
        return []
    names = " and ".join(f"'{row}'" for row in rows)
    return [f"{where}: no record will have {names} on {'any task' if claim.task is None else repr(claim.task)}."]


def _twice(rows: Sequence[TrainingRow], posthoc: Sequence[PosthocRow]) -> list[str]:
    trained = [name for row in rows for name in (row.name, *map(row.named, row.controls))]
    names = [PLAIN, *(row.name for row in posthoc), *trained]
    mistakes = [
        f"the row '{name}' is named twice; give one another name, or remove it."
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    folders = [row.folder for row in rows]
    mistakes += [
        f"the row '{row.name}' would use the same folder as another row, '{row.folder}': give it another name."
        for row in rows
        if names.count(row.name) == 1 and (folders.count(row.folder) > 1 or row.folder.startswith(slug(PLAIN) + "-"))
    ]
    return mistakes


def _gains(gains: Mapping[str, str], metrics: set[str] | None) -> list[str]:
    known = ClaimNames({"metric": metrics}, {"metric": canonical_metric}, {"metric": "metrics"})
    mistakes = [line for key in gains for line in unknown("[gains]", "criterion", key, CRITERIA)]
    return mistakes + [
        line for key, metric in gains.items() for line in known.name(f"[gains] {key}", "metric", str(metric))
    ]
