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
it was trained for, and the post-hoc methods explain the plain model. raison.studies.kinds.trainings.check has all keys.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raison.core.errors import DataError
from raison.core.unit import Granularity
from raison.studies.kinds.comparison.results import digest_of
from raison.studies.kinds.comparison.spec import (
    Study,
    StudyData,
    StudyError,
    StudyModel,
    StudySettings,
    data_of,
    text_of,
)
from raison.studies.kinds.trainings import recipes as trainings_recipes
from raison.studies.kinds.trainings.check import canonical_measure, canonical_row, check, gains_of, is_kind
from raison.studies.kinds.trainings.recipes import Recipes
from raison.studies.kinds.trainings.rows import PosthocRow, TrainingRow, posthoc_rows, training_rows

_GOES_ON = re.compile(r"(?m)^even_at_chance[ \t]*=.*\n?")
"""A study that stopped at a model at chance goes on in its folder once this key was added."""


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
class TrainingStudy:
    """A file of trainings without mistakes. `claims` and `gains` name metrics and rows as the records do."""

    path: Path
    text: str
    title: str
    seeds: tuple[int, ...]
    metrics: tuple[str, ...]
    keep: bool
    settings: StudySettings
    tasks: Mapping[str, Task]
    plain: Mapping[str, Any]
    rows: tuple[TrainingRow, ...]
    posthoc: tuple[PosthocRow, ...]
    claims: tuple[Mapping[str, Any], ...]
    gains: Mapping[str, str]

    @property
    def digest(self) -> str:
        """The hash that names the file's content, without what only says to go on."""
        return digest_of(_GOES_ON.sub("", self.text))

    @property
    def name(self) -> str:
        """As for other studies."""
        return self.as_study(next(iter(self.tasks)), next(iter(self.tasks)), ("random",), self.seeds[0]).name

    def as_study(self, task: str, test: str, methods: tuple[str, ...], seed: int) -> Study:
        """What is asked of one model of a task on one test set, as a study of models that exist."""
        about, data = self.tasks[task], self.tasks[test].test
        unit: Granularity = data.unit or self.settings.unit
        return Study(
            path=self.path,
            text=self.text,
            title=self.title,
            methods=methods,
            metrics=self.metrics,
            select=(),
            agreement=False,
            settings=StudySettings(
                unit, self.settings.target, self.settings.of, self.settings.removal, (seed,), self.settings.truncate
            ),
            models={task: StudyModel(about.base, about.labels)},
            data={test: data},
            runs=((task, test),),
            claims=(),
        )


def names_trainings(path: str | Path) -> bool:
    """Whether a file is of this sort; False where it cannot be read, for the reader of other studies to say why."""
    try:
        return is_kind(tomllib.loads(Path(path).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return False


def read(path: str | Path, recipes: Recipes | None = None) -> TrainingStudy:
    """Read a file of trainings. Raises DataError for one that is missing or no TOML, StudyError with its mistakes."""
    path = Path(path)
    text = text_of(path)
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"{path} is no TOML: {error}.") from None
    mistakes = check(table, recipes or trainings_recipes.recipes())
    if mistakes:
        raise StudyError(path, mistakes)
    tasks = {name: _task(name, entry, path.parent) for name, entry in table["tasks"].items()}
    rows = training_rows(table["trainings"], table.get("training", {}), tuple(tasks), table.get("controls", ()))
    settings = dict(table.get("settings", {}))
    if isinstance(settings.get("target"), list):
        settings["target"] = tuple(settings["target"])
    return TrainingStudy(
        path=path,
        text=text,
        title=table["title"],
        seeds=tuple(table.get("seeds", (0,))),
        metrics=tuple(table["metrics"]),
        keep=table.get("keep", False),
        settings=StudySettings(**settings),
        tasks=tasks,
        plain=table.get("plain", {}),
        rows=tuple(rows),
        posthoc=tuple(posthoc_rows(table.get("posthoc", ()), tuple(tasks))),
        claims=tuple(_claim(entry, _names(rows)) for entry in table.get("claims", ())),
        gains=gains_of(table),
    )


def _task(name: str, entry: Mapping[str, Any], folder: Path) -> Task:
    # A study that brings its base along can be run from anywhere.
    beside = folder / entry["base"]
    return Task(
        name=name,
        base=str(beside) if beside.is_dir() else entry["base"],
        kind=entry.get("kind", "classification"),
        labels=tuple(entry.get("labels", ())),
        train=data_of(entry["train"], folder),
        test=data_of(entry["test"], folder),
        dev=data_of(entry["dev"], folder) if "dev" in entry else None,
        also=tuple(entry.get("also", ())),
        even_at_chance=entry.get("even_at_chance", False),
    )


def _names(rows: Sequence[TrainingRow]) -> list[str]:
    return [name for row in rows for name in (row.name, *(row.named(control) for control in row.controls))]


def _claim(entry: Mapping[str, Any], trainings: list[str]) -> dict[str, Any]:
    rows = {
        key: canonical_row(entry[key], trainings)
        for key in ("above", "below", "than")
        if isinstance(entry.get(key), str)
    }
    return {**entry, "metric": canonical_measure(entry["metric"]), **rows}
