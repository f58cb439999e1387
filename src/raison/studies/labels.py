"""The share of the largest class, and the models' accuracy, from a study's labels."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from raison.core.errors import InputError
from raison.data import Dataset
from raison.data.dataset import names_in
from raison.jobs.store import write_record
from raison.runs.run import Run
from raison.runs.task_accuracy import FILE, Labels, read_labels

_DIGITS = 4


def majority_of(data: Dataset) -> float | None:
    """The share of the most frequent label; None if a row has none. For question answering, without classes, 0."""
    if any(row.answers for row in data.rows):
        return 0.0
    # As `Dataset.class_indices` reads them: in any case.
    labels = [row.label.lower() if isinstance(row.label, str) else row.label for row in data.rows]
    if not labels or any(label is None for label in labels):
        return None
    return round(Counter(labels).most_common(1)[0][1] / len(labels), _DIGITS)


def accuracy_of(run: Run, data: Dataset, classes: Sequence[str], names: Sequence[str] = ()) -> float | None:
    """The share of a run's texts whose label is predicted; None if the labels are not the model's classes.

    `classes` are the model's own, by which the records name predictions, and `names` the same under the data's names,
    if the study gives them.
    """
    places = {name.lower(): place for place, name in enumerate(classes)}
    predicted = {text: places.get(name.lower(), -1) for text, name in _predictions(run).items()}
    if not predicted or min(predicted.values()) < 0 or any(row.label is None for row in data.rows):
        return None
    try:
        right = data.class_indices(tuple(names) or names_in(data, tuple(classes)))
    except InputError:
        return None
    return round(sum(right[text] == place for text, place in predicted.items()) / len(predicted), _DIGITS)


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
