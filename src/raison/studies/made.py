"""Models that a study trains itself if they are missing, and keeps in the cache.

    [models.tiny]
    name = "t5_encoder 2x64"
    [models.tiny.made]
    architecture = "t5_encoder"
    layers = 2
    width = 64
    heads = 4
    train = { source = "sst2", split = "train", limit = 6000, known_features = { words = ["negative", "positive"] } }

The settings are documented in raison.training.settings.scratch. Without `held_out`, a table of the same kind as
`train`, a tenth of the training texts chooses the best epoch and gives the accuracy.
"""

import hashlib
import json
import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock
from rich.console import Console

from raison.core.errors import DataError
from raison.core.model import LanguageModel
from raison.core.targets.outputs import PROBABILITIES
from raison.data import Dataset
from raison.data.dataset import numbered
from raison.jobs.file_digest import sha256_of
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.writing.statements import Statements
from raison.models.adapters.writing.writer import Writer
from raison.models.loading.ready_made import zoo
from raison.paths import cache_folder
from raison.studies.data_loading import load_rows
from raison.studies.entries import Made, StudyModel
from raison.training.preparation.samples import split
from raison.training.recipes.scratch import train_scratch

CLASSES = 1000
"""Maximum number of classes that a study's header names: a model of masked words has its vocabulary."""
_RECIPE = 2
"""Version of the training, increased whenever the same table would give another model."""
_FLAT = ("settings", "wanted", "lengths")
"""Records whose entries are written in the enclosing table."""
_HELD_OUT = 0.1
_FEWEST = 20
"""Minimum number of training texts for holding out a tenth."""


def made_folder(entry: StudyModel) -> Path:
    """The folder of a model that a study makes, trained first if it is not there.

    Models with equal tables are the same model in all studies. A killed training resumes from its last epoch; a second
    process waits for the first. Raises RaisonError.
    """
    assert entry.made is not None, "a model that is not made here"
    place = cache_folder() / "made"
    slug = re.sub(r"[^A-Za-z0-9]+", "-", entry.name).strip("-").lower()
    folder = place / f"{slug}-{_digest(entry.made, entry.labels)}"
    if (folder / zoo.CARD).is_file():
        return folder
    try:
        place.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_suffix(".lock")):
            if not (folder / zoo.CARD).is_file():
                _make(entry.name, entry.made, entry.labels, folder)
    except OSError as error:
        raise DataError(f"cannot save the model {entry.name} in {folder}: {error.strerror or error}.") from error
    return folder


def card_of(entry: StudyModel) -> dict[str, Any]:
    """The training card of a study's model; empty for one that was trained elsewhere."""
    if entry.made is not None:
        return zoo.read_card(made_folder(entry))
    if entry.name in zoo.names():
        return zoo.read_card(zoo.folder_of(entry.name))
    return zoo.read_card(Path(entry.name)) if zoo.is_adapter(Path(entry.name)) else {}


def described(entry: StudyModel, model: LanguageModel | Writer) -> dict[str, Any]:
    """The description of a model: name, classes if it predicts some, known accuracies, numbers of parameters."""
    counts: dict[str, int] = {}
    reader = model.reader if isinstance(model, Statements) else model
    if isinstance(reader, Classifier):
        whole = sum(parameter.numel() for parameter in reader.core.parameters())
        table = sum(parameter.numel() for parameter in reader.embedding_table.parameters())
        counts = {"parameters": whole, "parameters_without_words": whole - table}
    classes = list(model.classes) if isinstance(model, LanguageModel) and model.outputs in PROBABILITIES else []
    return {"name": model.name, **counts, "accuracy": card_of(entry).get("accuracy", {}), "classes": classes[:CLASSES]}


def _make(name: str, made: Made, labels: tuple[str, ...], folder: Path) -> None:
    train, held_out = _data(made, labels)
    # The work is done in another folder next to it; the folder itself exists only when complete.
    work = folder.with_suffix(".part")
    work.mkdir(exist_ok=True)
    Console(stderr=True).print(f"making the model {name} from {len(train)} texts, once", highlight=False)
    card = train_scratch(train, held_out, work, made.settings)
    work.rename(folder)
    result = f"{name}: accuracy {card['accuracy']['held_out']:.4f} on held-out texts"
    Console(stderr=True).print(f"{result}, {card['training']['seconds']} s", highlight=False)


def _data(made: Made, labels: tuple[str, ...]) -> tuple[Dataset, Dataset]:
    """The training texts, and those that choose the epoch."""
    held_out = None if made.held_out is None else load_rows(made.held_out, None)
    counted = load_rows(made.train, None).counted_with(held_out)
    train = numbered(counted, labels)
    if held_out is not None:
        return train, numbered(held_out.counted_with(counted), labels)
    if len(train) < _FEWEST:
        raise DataError(f"{train.name} has {len(train)} rows, too few to hold some out: give more rows, or held_out.")
    few = max(1, round(_HELD_OUT * len(train)))
    return split(train, None, len(train) - few, few, made.settings.seed)


def _digest(made: Made, labels: tuple[str, ...]) -> str:
    """Identifies a table. A data file counts by its content, not by its path."""
    table = _stated(made)
    for part in ("train", "held_out"):
        if part in table and Path(table[part]["source"]).is_file():
            table[part]["source"] = sha256_of((Path(table[part]["source"]),))
    stated = json.dumps([_RECIPE, table, list(labels)], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(stated.encode()).hexdigest()[:12]


def _stated(record: Any) -> dict[str, Any]:
    """A record as a table without default values, with the entries of flat records in it."""
    table: dict[str, Any] = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if is_dataclass(value):
            table |= _stated(value) if field.name in _FLAT else {field.name: _stated(value)}
        elif value != field.default:
            table[field.name] = value
    return table
