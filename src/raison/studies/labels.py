"""The share of the largest class, and the models' accuracy, from a study's labels."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from raison.core.errors import InputError
from raison.data import Dataset
from raison.data.dataset import unnamed_classes
from raison.jobs.store import write_record
from raison.runs.run import Run
from raison.runs.task_accuracy import FILE, Labels, read_labels

_DIGITS = 4


def majority_of(data: Dataset) -> float | None:
    """The share of the most frequent label; None if a row has none. For question answering, without classes, 0."""
    if any(row.answers for row in data.rows):
        return 0.0
    labels = [row.label for row in data.rows]
    if not labels or any(label is None for label in labels):
        return None
    return round(Counter(labels).most_common(1)[0][1] / len(labels), _DIGITS)


def accuracy_of(run: Run, data: Dataset, classes: Sequence[str]) -> float | None:
    """The share of a run's texts whose label is predicted; None if labels and predictions have different names.

    `classes` are the model's classes under the data's names if the study gives them, otherwise (). Data without names
    of labels, such as a file, use those of the model.
    """
    predictions = _predictions(run)
    names = tuple(name.lower() for name in classes or data.labels or _classes_of(run))
    unnamed = dict(zip(unnamed_classes(len(names)), names, strict=True))
    predicted = {text: unnamed.get(name.lower(), name.lower()) for text, name in predictions.items()}
    if not predicted or not set(predicted.values()) <= set(names) or any(row.label is None for row in data.rows):
        return None
    try:
        right = [names[number] for number in data.class_indices(names)]
    except InputError:
        return None
    return round(sum(right[text] == name for text, name in predicted.items()) / len(predicted), _DIGITS)


def _predictions(run: Run) -> dict[int, str]:
    """The model's prediction for each text that some row has."""
    known: dict[int, str] = {}
    for row, seed in run.header.keys:
        texts = [text for text in np.flatnonzero(run.records.done(row, seed)).tolist() if text not in known]
        if texts:
            known.update(zip(texts, run.records.predictions(row, seed, np.array(texts)), strict=True))
        if len(known) == run.header.texts:
            break
    return known


def _classes_of(run: Run) -> tuple[str, ...]:
    """The model's classes, as an explanation states them; () if there is none."""
    for row, seed in run.header.keys:
        if run.explains(row, seed):
            return tuple(run.explanations(row, seed)[0].classes)
    return ()


def write_labels(folder: Path, data: Mapping[str, Dataset], accuracies: Mapping[str, float | None]) -> None:
    """Write the labels file of a study's folder: the majorities of its data, and accuracies of runs in addition to
    known ones."""
    known = read_labels(folder)
    majorities = {key: majority_of(rows) for key, rows in data.items()}
    labels = Labels(
        {key: share for key, share in {**known.majorities, **majorities}.items() if share is not None},
        {key: share for key, share in {**known.accuracies, **accuracies}.items() if share is not None},
    )
    values = {"majorities": labels.majorities, "accuracies": labels.accuracies}
    write_record(folder / FILE, {part: dict(sorted(shares.items())) for part, shares in values.items()})
