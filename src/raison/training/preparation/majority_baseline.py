"""Checks whether a model has learned its task; explaining one that has not is pointless."""

from raison.core.errors import InputError
from raison.numerics.measures.class_scores import ClassScores

POINTS = 0.10
"""A model that exceeds always predicting the most frequent label by at most this much counts as being at chance."""


def check_learned(name: str, scores: ClassScores) -> None:
    """Raise InputError for a model that is hardly more accurate on held-out texts than the most frequent label."""
    if scores.majority == 1:
        raise InputError(
            f"all held-out texts have the same label, which does not show whether {name} has learned its task: give "
            "texts of several classes, or continue with --even-at-chance (above_chance=False)."
        )
    if scores.accuracy <= scores.majority + POINTS:
        raise InputError(
            f"{name} is right on {100 * scores.accuracy:.1f} % of the held-out texts, and always predicting the most "
            f"frequent label on {100 * scores.majority:.1f} %: it has hardly learned its task, so there is little to "
            "explain. Train it longer or on more texts, or continue with --even-at-chance (above_chance=False)."
        )
