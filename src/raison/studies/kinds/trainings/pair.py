"""One task under one seed: the plain model, the methods that explain it, and every training that starts from it."""

import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from raison.core.capabilities.passes import Passes
from raison.core.errors import DataError, InputError
from raison.core.model import LanguageModel
from raison.core.registry import label_of
from raison.data import Dataset
from raison.data.digest import dataset_digest
from raison.jobs import disk
from raison.jobs.folder import TRAINING
from raison.jobs.origins import Origins
from raison.jobs.store import RecordStore, read_record, write_record
from raison.judging.compare import noted_header
from raison.judging.work import execute
from raison.methods import CATALOGUE
from raison.models.adapters.places.spans import answer_tokens, inside_window
from raison.models.loading.load import as_classifier, load
from raison.progress import ProgressCallback, is_shown, say
from raison.runs.judging import Learned
from raison.runs.run import HEADER, Run, head_of, open_run, read_header
from raison.studies.file import Study
from raison.studies.kinds.trainings.grids import TrainingRow
from raison.studies.kinds.trainings.recipes import Recipes
from raison.studies.kinds.trainings.records import (
    JUDGED,
    PLAIN,
    ExplanationCost,
    RowKind,
    TrainingKey,
    TrainingRecord,
    model_folder,
)
from raison.studies.kinds.trainings.spec import Task, Trainings
from raison.studies.labels import majority_of
from raison.studies.plans import plan_of
from raison.studies.settings import as_values, make

TRAINED = "trained.json"
"""The file in a model's folder that marks its training as finished."""


@dataclass(frozen=True, slots=True)
class TaskData:
    """A task's rows. Labels are numbers in the order of the task's `labels`, which are the names in the data sets."""

    train: Dataset
    test: Dataset
    dev: Dataset | None

    def to_dict(self) -> dict[str, object]:
        """A description of these rows, as plain JSON values."""
        parts = {"train": self.train, "dev": self.dev, "test": self.test}
        return {
            name: None if part is None else {"name": part.name, "rows": len(part), "sha256": dataset_digest(part)}
            for name, part in parts.items()
        }


@dataclass(frozen=True, slots=True)
class Workshop:
    """Shared by all pairs: the data of each task, the existing records, and their origins."""

    study: Study
    data: Mapping[str, TaskData]
    folder: Path
    store: RecordStore
    origins: Origins
    records: dict[TrainingKey, TrainingRecord]

    @property
    def spec(self) -> Trainings:
        """The record of the file."""
        return self.study.spec

    @property
    def recipes(self) -> Recipes:
        """The training functions."""
        return self.study.tools

    def keep(self, records: list[TrainingRecord]) -> None:
        """Write records; they are on disk when this returns."""
        self.store.append([self.origins.stamped(record.to_dict()) for record in records])
        self.records.update({record.key: record for record in records})

    def place(self, task: Task, row: str, seed: int) -> Path:
        """The folder of a model while it is needed."""
        return model_folder(self.folder, task.name, row, seed)


@dataclass(frozen=True, slots=True)
class _Judging:
    """The evaluation of a model of `task`: these methods, under a seed, on the data of `test`."""

    task: Task
    test: str
    methods: tuple[str, ...]
    seed: int


@dataclass(frozen=True, slots=True)
class _TrainedModel:
    """A trained model: its folder, and how it was made."""

    name: str
    folder: Path
    kind: RowKind
    settings: Mapping[str, Any]
    texts: int
    history: Mapping[str, Any]
    seconds: float


def is_through(shop: Workshop, task: Task, seed: int) -> bool:
    """Whether all records exist and temporary models are removed."""
    rows = [row.folder for row in shop.spec.rows if task.name in row.tasks]
    left = [_untidy(shop, shop.place(task, row, seed)) for row in (*rows, PLAIN)]
    return not _missing(shop, task, seed) and not any(left)


def do_pair(shop: Workshop, task: Task, seed: int, advance: ProgressCallback) -> None:
    """Do the missing work of a task and a seed. If stopped anywhere, it resumes when called again."""
    missing = _missing(shop, task, seed)
    posthoc = [row.name for row in shop.spec.posthoc]
    rows = [row for row in shop.spec.rows if task.name in row.tasks]
    if missing:
        made = _fine_tuned(shop, task, seed)
        if missing & {PLAIN, *posthoc}:
            _judge_plain(shop, task, made, missing, seed)
        for row in rows:
            if row.name in missing:
                _train(shop, task, row, seed)
    for folder in (*(row.folder for row in rows), PLAIN):
        _tidy(shop, shop.place(task, folder, seed))
    advance(1)


def _missing(shop: Workshop, task: Task, seed: int) -> set[str]:
    """The rows of a pair that have no record on some test, of their own or of a control."""
    records: dict[str, tuple[str, ...]] = {PLAIN: (PLAIN,)}
    records |= {row.name: (row.name,) for row in shop.spec.posthoc if task.name in row.tasks}
    records |= {row.name: (row.name, *map(row.named, row.controls)) for row in shop.spec.rows if task.name in row.tasks}
    return {
        row
        for row, names in records.items()
        if any((task.name, test, name, seed) not in shop.records for test in task.tests for name in names)
    }


def _fine_tuned(shop: Workshop, task: Task, seed: int) -> _TrainedModel:
    data, folder = shop.data[task.name], shop.place(task, PLAIN, seed)
    settings = make(shop.recipes.plain_settings, shop.spec.plain, seed, is_shown())
    name = f"{task.name}, seed {seed}: plain"

    def work() -> Mapping[str, Any]:
        say(f"{name}: fine-tuning")
        card = shop.recipes.fine_tune(task.base, data.train, folder, settings, data.dev)
        return card.get("history", {})

    history, seconds = _once(folder, work)
    return _TrainedModel(name, folder, "plain", as_values(settings), _count(settings, data.train), history, seconds)


def _refuse_chance(shop: Workshop, task: Task, seed: int) -> None:
    """InputError for a plain model that has hardly learned its task, unless the file says to continue."""
    majority = majority_of(shop.data[task.name].test)
    plain = shop.records[task.name, task.name, PLAIN, seed]
    learned = Learned(plain.accuracy, math.nan if majority is None else majority, "the test texts")
    if learned.failed and not task.even_at_chance:
        raise InputError(
            f"[tasks.{task.name}], seed {seed}: the plain model has hardly learned its task ({learned.says}), so no "
            "explainer of it is trained. Fine-tune it longer ([plain] epochs) or on more texts, or set "
            f"even_at_chance = true in [tasks.{task.name}] and continue with --resume."
        )


def _train(shop: Workshop, task: Task, row: TrainingRow, seed: int) -> None:
    _refuse_chance(shop, task, seed)
    data, folder = shop.data[task.name], shop.place(task, row.folder, seed)
    settings = make(shop.recipes.settings, row.settings, seed, is_shown())
    name = f"{task.name}, seed {seed}: {row.name}"

    def work() -> Mapping[str, Any]:
        say(f"{name}: training")
        command = f"raison study run {shop.study.path}"
        plain = _loaded(shop.place(task, PLAIN, seed))
        return shop.recipes.train(plain, data.train, folder, settings, data.dev, command).history

    history, seconds = _once(folder, work)
    made = _TrainedModel(name, folder, "training", as_values(settings), _count(settings, data.train), history, seconds)
    method = label_of(CATALOGUE.create(shop.recipes.method(settings)))
    model, records = _loaded(folder), []
    for test in task.tests:
        judging = _Judging(task, test, (method, *row.controls), seed)
        run = _judge(shop, judging, model, made)
        record = replace(_record(shop, judging, model, made), row=row.name)
        records.append(_explained(record, run, judging, method))
        for other in row.controls:
            control = replace(record, row=row.named(other), kind="control", history={})
            records.append(_explained(control, run, judging, other))
    shop.keep(records)
    _tidy(shop, folder)


def _judge_plain(shop: Workshop, task: Task, made: _TrainedModel, missing: Collection[str], seed: int) -> None:
    """The missing ones of the plain model's own record and of those of the methods that explain it."""
    model, records = _loaded(made.folder), []
    for test in task.tests:
        # What was begun goes on with the same rows, whatever has its record by now.
        asked = {*missing, *_begun(made.folder / JUDGED / test)}
        judging = _Judging(task, test, tuple(row.name for row in shop.spec.posthoc if row.name in asked), seed)
        record = _record(shop, judging, model, made)
        records += [record] * (PLAIN in missing)
        posthoc = replace(record, kind="posthoc", history={})
        run = _judge(shop, judging, model, made) if judging.methods else None
        left = [method for method in judging.methods if method in missing]
        records += [_explained(replace(posthoc, row=method), run, judging, method) for method in left if run]
    shop.keep(records)


def _begun(folder: Path) -> set[str]:
    """The rows of a run that was begun in a folder."""
    header = folder / HEADER
    return {row.label for row in read_header(header).rows} if header.exists() else set()


def _judge(shop: Workshop, judging: _Judging, model: LanguageModel, made: _TrainedModel) -> Run:
    where = "" if judging.test == judging.task.name else f" on {judging.test}"
    say(f"{made.name}: explaining{where}")
    wanted = shop.spec.request(judging.task, judging.test, judging.methods, judging.seed)
    plan = plan_of(wanted, model, shop.data[judging.test].test)
    plan = replace(plan, rows=tuple(row for row in plan.rows if row.label in judging.methods))
    # The model is named by its place in the study, wherever its folder is. Records of texts survive a kill, and stay
    # with the weights that made them.
    explained = open_run(head_of({**noted_header(plan).raw, "model": made.name}), made.folder / JUDGED / judging.test)
    execute(plan, explained, is_shown())
    return explained


def _loaded(folder: Path) -> LanguageModel:
    """A model that a training has saved. Raises LoadError."""
    return as_classifier(load(folder))


def _record(shop: Workshop, judging: _Judging, model: LanguageModel, made: _TrainedModel) -> TrainingRecord:
    """The record of a model before it is explained."""
    return TrainingRecord(
        task=judging.task.name,
        test=judging.test,
        row=PLAIN,
        kind=made.kind,
        seed=judging.seed,
        method="",
        settings=made.settings,
        texts=made.texts,
        scores={},
        groups={},
        correct=_correct(model, shop.data[judging.test].test, shop.spec.settings.truncate),
        history=made.history,
        training_seconds=made.seconds,
    )


def _correct(model: LanguageModel, data: Dataset, truncate: bool) -> tuple[int, ...]:
    """1 for each text whose label, or one of whose answers with both ends, the model predicts."""
    correct = []
    for row in data.rows:
        # One at a time: a large data set's tokens need not be in memory together.
        encoding = model.encode([row.text], "token", truncate)
        # A question answering model predicted its answer when it encoded the text.
        predicted = (model.ask(Passes).predicted(encoding) if encoding.spans is None else encoding.spans)[0]
        if row.answers:
            there = [answer for answer in row.answers if inside_window(encoding, [answer])[0]]
            right = any(bool((predicted == answer_tokens(encoding, [answer])[0]).all()) for answer in there)
        else:
            right = int(predicted[0]) == row.label
        correct.append(int(right))
    return tuple(correct)


def _explained(record: TrainingRecord, run: Run, judging: _Judging, method: str) -> TrainingRecord:
    """The record with the scores and the cost of one method's explanations."""
    lines = [run.records[method, judging.seed, text] for text in range(run.header.texts)]
    return replace(
        record,
        method=method,
        scores={
            info.label: tuple(line.scores[place] for line in lines) for place, info in enumerate(run.header.single)
        },
        groups={metric: tuple(run.groups[method, judging.seed, metric]) for metric in run.header.grouped},
        explaining=ExplanationCost(
            tuple(line.costs.seconds for line in lines),
            tuple(line.costs.evaluations for line in lines),
            tuple(line.costs.gradients for line in lines),
        ),
    )


def _once(folder: Path, work: Callable[[], Mapping[str, Any]]) -> tuple[Mapping[str, Any], float]:
    """The card of a training, and its seconds; a finished training is not repeated."""
    path = folder / TRAINED
    try:
        trained = read_record(path)
    except DataError:
        say(f"{path} is broken: the training is repeated")
        trained = None
    if trained is None:
        started = time.monotonic()
        history = dict(work())
        trained = {"history": history, "seconds": history.get("seconds", time.monotonic() - started)}
        write_record(path, trained)
    return trained["history"], float(trained["seconds"])


def _count(settings: Any, train: Dataset) -> int:
    """The number of training texts; settings may ask for fewer than there are."""
    wanted = as_values(settings).get("texts")
    return len(train) if wanted is None else min(int(wanted), len(train))


def _untidy(shop: Workshop, folder: Path) -> list[Path]:
    """The files of a model that are no longer needed; the explanations of its texts and the trained explainer stay.

    The file that marks the training as finished is removed first, so that what a kill leaves is trained again.
    """
    if shop.spec.keep or not folder.is_dir():
        return []
    left = [path for path in folder.iterdir() if path.name not in (JUDGED, TRAINING)]
    return sorted(left, key=lambda path: path.name != TRAINED)


def _tidy(shop: Workshop, folder: Path) -> None:
    for path in _untidy(shop, folder):
        disk.remove(path)
