"""Scores of predicted classes: accuracy, and F1 per class and on average."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ClassScores:
    """Shares from 0 to 1. `f1` has one per class, None for a class that is neither a label nor predicted.

    `majority` is the share of the most frequent label: what always predicting it would reach.
    """

    accuracy: float
    majority: float
    f1: tuple[float | None, ...]

    @property
    def macro_f1(self) -> float:
        """The mean of the classes' F1."""
        known = [value for value in self.f1 if value is not None]
        return sum(known) / len(known)

    def to_dict(self, classes: Sequence[str]) -> dict[str, object]:
        """F1 as plain JSON values, by the classes' names."""
        rounded = (None if value is None else round(value, 4) for value in self.f1)
        return {"macro": round(self.macro_f1, 4), "classes": dict(zip(classes, rounded, strict=True))}


def class_scores(predicted: Sequence[int], labels: Sequence[int], classes: int) -> ClassScores:
    """Scores of predictions, one per text; F1 = 2 TP / (2 TP + FP + FN). There must be at least one text."""
    pairs = list(zip(predicted, labels, strict=True))
    f1: list[float | None] = []
    for number in range(classes):
        hits = sum(prediction == label == number for prediction, label in pairs)
        either = sum(prediction == number for prediction, _ in pairs) + sum(label == number for _, label in pairs)
        f1.append(2 * hits / either if either else None)
    majority = max(sum(label == number for label in labels) for number in range(classes))
    return ClassScores(sum(a == b for a, b in pairs) / len(pairs), majority / len(pairs), tuple(f1))
