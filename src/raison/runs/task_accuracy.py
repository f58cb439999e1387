"""Whether a study's models learned their tasks, from its folder.

    labels.json   {"majorities": {DATA: share of the largest class}, "accuracies": {RUN: share of right predictions}}

The shares are of the study's own texts and need their labels, which the records do not have: running a study writes
them (raison.studies.labels). Studies of trust, whose records have no predictions, predict up to 1,000 texts for it
(raison.studies.measured_accuracy). If a folder has no accuracy, as older ones of studies of trust, that on held-out
texts of the model's training is used, which is in the study's header if known.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from raison.jobs.store import read_record, unreadable
from raison.runs.headers import ModelHead
from raison.runs.judging import Learned

FILE = "labels.json"
_HELD_OUT = ("test", "held_out", "dev")
"""Splits on which an accuracy was measured, the most reliable first."""


@dataclass(frozen=True, slots=True)
class Labels:
    """`majorities` by the study's key of the data (of trainings: the task), `accuracies` by the run's name."""

    majorities: Mapping[str, float] = field(default_factory=dict)
    accuracies: Mapping[str, float] = field(default_factory=dict)

    def of_run(self, name: str, model: ModelHead | None, data: str) -> Learned:
        """A run's model, described by `model` in the study's header, on data of this key."""
        majority = self.majorities.get(data, math.nan)
        if name in self.accuracies:
            return Learned(self.accuracies[name], majority)
        accuracy = (model and model.accuracy) or {}
        known = next((accuracy[part] for part in _HELD_OUT if part in accuracy), math.nan)
        return Learned(known, majority, "held-out texts")


def read_labels(folder: Path) -> Labels:
    """The label statistics in a study's folder; empty if no file was written. Raises DataError for a broken one."""
    labels = read_record(folder / FILE)
    if labels is None:
        return Labels()
    try:
        return Labels(
            {str(key): float(share) for key, share in labels["majorities"].items()},
            {str(key): float(share) for key, share in labels["accuracies"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise unreadable(folder / FILE, error) from None
