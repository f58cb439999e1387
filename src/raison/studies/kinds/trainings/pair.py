"""One task under one seed: the plain model, what explains it, and every training that starts from it."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from raison.compare import begin, execute
from raison.core.errors import DataError, InputError
from raison.core.model import LanguageModel
from raison.core.registry import label_of
from raison.jobs import disk
from raison.jobs.folder import TRAINING
from raison.jobs.store import RecordStore, read_record, write_record
from raison.methods import CATALOGUE
from raison.runs.judging import Learned
from raison.runs.run import Run
from raison.studies.kinds.trainings.jobs import Asked, TaskData, correct, header_for, judging, trained
from raison.studies.kinds.trainings.recipes import Recipes, as_values, make
from raison.studies.kinds.trainings.results import MODELS, PLAIN, Explaining, Key, RowKind, TrainingRecord
from raison.studies.kinds.trainings.rows import TrainingRow
from raison.studies.kinds.trainings.spec import Task, TrainingStudy
from raison.studies.labels import majority_of

TRAINED = "trained.json"
"""In a model's folder once its training is through."""
JUDGED = "judged"


@dataclass(frozen=True, slots=True)
class Workshop:
    """What all pairs share. `records` are those that there are; `tell` hears of steps, `bars` shows their progress."""

    study: TrainingStudy
    recipes: Recipes
    data: Mapping[str, TaskData]
    folder: Path
    store: RecordStore
    records: dict[Key, TrainingRecord]
    tell: Callable[[str], None]
    bars: bool

    def keep(self, records: list[TrainingRecord]) -> None:
        """Write records; they are on the disk when this returns."""
        self.store.append([record.to_dict() for record in records])
        self.records.update({record.key: record for record in records})


@dataclass(frozen=True, slots=True)
class _Made:
    """A trained model: where it is, how it was made."""

    name: str
    folder: Path
    kind: RowKind
    settings: Mapping[str, Any]
    texts: int
    history: Mapping[str, Any]
    seconds: float


def do_pair(shop: Workshop, task: Task, seed: int) -> None:
    """Do what the records lack of a task and a seed. Stopped anywhere, it goes on when called again."""
    posthoc = [row.name for row in shop.study.posthoc if task.name in row.tasks]
    rows = [row for row in shop.study.rows if task.name in row.tasks]
    missing = {name for name in (PLAIN, *posthoc, *(row.name for row in rows)) if _lacking(shop, task, (name, seed))}
    plain = shop.folder / MODELS / task.name / f"{PLAIN}-{seed}"
    if missing:
        made = _fine_tuned(shop, task, seed, plain)
        if missing & {PLAIN, *posthoc}:
            _judge_plain(shop, task, seed, (made, tuple(posthoc)))
        for row in rows:
            if row.name in missing:
                _train(shop, task, seed, (row, plain))
    for row in rows:
        _tidy(shop, plain.with_name(f"{row.folder}-{seed}"))
    _tidy(shop, plain)


def _lacking(shop: Workshop, task: Task, row: tuple[str, int]) -> bool:
    return any((task.name, test, *row) not in shop.records for test in task.tests)


def _fine_tuned(shop: Workshop, task: Task, seed: int, folder: Path) -> _Made:
    data = shop.data[task.name]
    settings = make(shop.recipes.plain_settings, shop.study.plain, seed, shop.bars)
    name = f"{task.name}, seed {seed}: plain"

    def work() -> Mapping[str, Any]:
        shop.tell(f"{name}: fine-tuning")
        card = shop.recipes.fine_tune(task.base, data.train, folder, settings, data.dev)
        history: Mapping[str, Any] = card.get("history", {})
        return history

    history, seconds = _once(shop, folder, work)
    return _Made(name, folder, "plain", as_values(settings), _count(settings, data), history, seconds)


def _refuse_chance(shop: Workshop, task: Task, seed: int) -> None:
    """InputError for a plain model that has hardly learned its task, unless the file says to go on."""
    majority = majority_of(shop.data[task.name].test)
    plain = shop.records[task.name, task.name, PLAIN, seed]
    learned = Learned(plain.accuracy, math.nan if majority is None else majority, "the test texts")
    if learned.failed and not task.even_at_chance:
        raise InputError(
            f"[tasks.{task.name}], seed {seed}: the plain model has hardly learned its task ({learned.says}), so no "
            "explainer of it is trained. Fine-tune it longer ([plain] epochs) or on more texts, or set "
            f"even_at_chance = true in [tasks.{task.name}] and go on with --resume."
        )


def _train(shop: Workshop, task: Task, seed: int, what: tuple[TrainingRow, Path]) -> None:
    row, plain = what
    _refuse_chance(shop, task, seed)
    data, folder = shop.data[task.name], plain.with_name(f"{row.folder}-{seed}")
    settings = make(shop.recipes.settings, row.settings, seed, shop.bars)
    name = f"{task.name}, seed {seed}: {row.name}"

    def work() -> Mapping[str, Any]:
        shop.tell(f"{name}: training")
        command = f"raison study run {shop.study.path}"
        card = shop.recipes.train(trained(plain), data.train, folder, settings, data.dev, command)
        history: Mapping[str, Any] = card.history
        return history

    history, seconds = _once(shop, folder, work)
    made = _Made(name, folder, "training", as_values(settings), _count(settings, data), history, seconds)
    method = label_of(CATALOGUE.create(shop.recipes.method(settings)))
    model, found = trained(folder), []
    for test in task.tests:
        asked = Asked(task.name, test, (method, *row.controls), seed)
        run = _judge(shop, asked, model, made)
        record = _record(asked, made, correct(model, shop.data[test].test, shop.study.settings.truncate))
        accuracy = shop.records[task.name, test, PLAIN, seed].accuracy
        record = replace(record, row=row.name, plain_accuracy=accuracy)
        found.append(_explained(record, run, asked, method))
        for other in row.controls:
            control = replace(record, row=row.named(other), kind="control", history={})
            found.append(_explained(control, run, asked, other))
    shop.keep(found)
    _tidy(shop, folder)


def _judge_plain(shop: Workshop, task: Task, seed: int, what: tuple[_Made, tuple[str, ...]]) -> None:
    """The plain model's own record, and those of the methods that explain it."""
    made, methods = what
    model, found = trained(made.folder), []
    for test in task.tests:
        asked = Asked(task.name, test, methods, seed)
        run = _judge(shop, asked, model, made)
        record = _record(asked, made, correct(model, shop.data[test].test, shop.study.settings.truncate))
        record = replace(record, plain_accuracy=record.accuracy)
        found.append(record)
        posthoc = replace(record, kind="posthoc", history={})
        found += [_explained(replace(posthoc, row=method), run, asked, method) for method in methods]
    shop.keep(found)


def _judge(shop: Workshop, asked: Asked, model: LanguageModel, made: _Made) -> Run:
    where = "" if asked.test == asked.task else f" on {asked.test}"
    shop.tell(f"{made.name}: explaining{where}")
    plan = judging(shop.study, asked, model, shop.data[asked.test].test)
    # Records of texts survive a kill, and stay beside the weights that made them.
    found = begin(plan, header_for(plan, made.name), made.folder / JUDGED / asked.test)
    execute(plan, found, shop.bars)
    return found


def _record(asked: Asked, made: _Made, right: tuple[int, ...]) -> TrainingRecord:
    """What is known of a model before it is explained."""
    return TrainingRecord(
        task=asked.task,
        test=asked.test,
        row=PLAIN,
        kind=made.kind,
        seed=asked.seed,
        method="",
        settings=made.settings,
        texts=made.texts,
        scores={},
        groups={},
        correct=right,
        plain_accuracy=0.0,
        history=made.history,
        training_seconds=made.seconds,
    )


def _explained(record: TrainingRecord, run: Run, asked: Asked, method: str) -> TrainingRecord:
    """The record with what one method's explanations reached, and what they took."""
    lines = [run.records[method, asked.seed, text] for text in range(run.header["texts"])]
    single = [metric["label"] for metric in run.header["metrics"] if not metric["grouped"]]
    grouped = [metric["label"] for metric in run.header["metrics"] if metric["grouped"]]
    return replace(
        record,
        method=method,
        scores={metric: tuple(line.scores[place] for line in lines) for place, metric in enumerate(single)},
        groups={metric: tuple(run.groups[method, asked.seed, metric]) for metric in grouped},
        explaining=Explaining(
            tuple(line.costs.seconds for line in lines),
            tuple(line.costs.evaluations for line in lines),
            tuple(line.costs.gradients for line in lines),
        ),
    )


def _once(shop: Workshop, folder: Path, work: Callable[[], Mapping[str, Any]]) -> tuple[Mapping[str, Any], float]:
    """What a training wrote down, and its seconds; a training that is through is not called again."""
    path = folder / TRAINED
    try:
        found = read_record(path)
    except DataError:
        shop.tell(f"{path} is broken: the training is done again")
        found = None
    if found is None:
        started = time.monotonic()
        history = dict(work())
        found = {"history": history, "seconds": history.get("seconds", time.monotonic() - started)}
        write_record(path, found)
    return found["history"], float(found["seconds"])


def _count(settings: Any, data: TaskData) -> int:
    """The texts that are learned from; settings may ask for fewer than there are."""
    asked = as_values(settings).get("texts")
    return len(data.train) if asked is None else min(int(asked), len(data.train))


def _tidy(shop: Workshop, folder: Path) -> None:
    """Delete a model that is no longer needed; how its texts were explained stays, and what was trained."""
    if shop.study.keep or not folder.is_dir():
        return
    # What says that the training is through goes first: without it, what a kill leaves is trained again.
    for path in sorted(folder.iterdir(), key=lambda path: path.name != TRAINED):
        if path.name not in (JUDGED, TRAINING):
            disk.remove(path)
