"""A model's accuracy on the data of a study, for kinds whose records have no predictions."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch

from raison.core.errors import InputError
from raison.core.inputs.unit import Text
from raison.core.model import LanguageModel
from raison.data import Dataset
from raison.data.dataset import names_in
from raison.explaining.batch import BATCH, prepare
from raison.explaining.settings import Settings
from raison.progress import ProgressCallback

ROWS = 1000
"""Maximum number of texts that are predicted."""
_READING = Settings("word", truncate=True)
"""A text that is too long is predicted by its beginning."""


@dataclass(frozen=True, slots=True)
class LabelledSample:
    """Texts, and the number of each one's class."""

    texts: tuple[Text, ...]
    right: tuple[int, ...]


def labelled_sample(model: LanguageModel, data: Dataset, names: Sequence[str], most: int) -> LabelledSample | None:
    """Up to `most` texts of the data that the model can read, drawn with a fixed seed because data may be sorted.

    `names` are the model's classes under the data's names if the study gives them, otherwise (). None if the labels are
    unknown, or are not classes of the model.
    """
    if model.multi_label or any(row.label is None for row in data.rows):
        return None
    try:
        right = data.class_indices(tuple(names) or names_in(data, model.classes))
    except InputError:
        return None
    order = np.random.default_rng(0).permutation(len(data)).tolist()
    drawn = list(islice((row for row in order if _is_readable(model, data.rows[row].text)), most))
    if not drawn:
        return None
    return LabelledSample(tuple(data.rows[row].text for row in drawn), tuple(right[row] for row in drawn))


def accuracy_on(model: LanguageModel, sample: LabelledSample, advance: ProgressCallback) -> float:
    """The share of the texts whose class is predicted: one pass for each."""
    hits = 0
    for start in range(0, len(sample.texts), BATCH):
        part = slice(start, start + BATCH)
        predicted = prepare(model, sample.texts[part], _READING).full.argmax(1)
        hits += int((predicted == torch.tensor(sample.right[part])).sum())
        advance(len(predicted))
    return round(hits / len(sample.texts), 4)


def _is_readable(model: LanguageModel, text: Text) -> bool:
    try:
        model.tokenized([text], _READING.unit, _READING.truncate)
    except InputError:
        return False
    return True
