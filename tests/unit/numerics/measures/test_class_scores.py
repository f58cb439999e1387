"""Accuracy and F1 of predictions, against scikit-learn."""

import numpy as np
import pytest

from raison.core.errors import InputError
from raison.numerics.measures.class_scores import class_scores
from raison.training.preparation.majority_baseline import check_learned


@pytest.mark.parametrize("seed", range(6))
def test_scores_are_scikit_learns(seed: int) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(seed)
    classes = int(rng.integers(2, 6))
    labels, predicted = (rng.integers(0, classes, 12).tolist() for _ in range(2))
    found = class_scores(predicted, labels, classes)
    there = sorted({*labels, *predicted})
    assert found.accuracy == pytest.approx(metrics.accuracy_score(labels, predicted))
    assert found.macro_f1 == pytest.approx(metrics.f1_score(labels, predicted, average="macro"))
    expected = metrics.f1_score(labels, predicted, average=None, labels=there)
    assert [found.f1[number] for number in there] == pytest.approx(expected)
    assert all(found.f1[number] is None for number in range(classes) if number not in there)
    assert found.majority == max(labels.count(number) for number in there) / 12


def test_a_model_at_chance_is_refused() -> None:
    labels = [0] * 6 + [1] * 4
    check_learned("m", class_scores([0] * 6 + [1, 1, 0, 0], labels, 2))
    for predicted in ([0] * 10, [0] * 6 + [1, 0, 0, 0]):
        with pytest.raises(InputError, match=r"m is right on [67]0\.0 % .* on 60\.0 %: .*--even-at-chance"):
            check_learned("m", class_scores(predicted, labels, 2))
