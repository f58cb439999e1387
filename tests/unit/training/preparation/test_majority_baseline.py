"""What is said of a model that cannot be shown to have learned its task."""

import pytest

from raison.core.errors import InputError
from raison.numerics.measures.class_scores import ClassScores
from raison.training.preparation.majority_baseline import check_learned


def scores(accuracy: float, majority: float) -> ClassScores:
    return ClassScores(accuracy, majority, (None,))


def test_one_class_is_not_a_model_at_chance() -> None:
    check_learned("m", scores(0.8, 0.6))
    with pytest.raises(InputError, match="it has hardly learned its task"):
        check_learned("m", scores(0.7, 0.6))
    with pytest.raises(InputError, match="all held-out texts have the same label"):
        check_learned("m", scores(1.0, 1.0))
