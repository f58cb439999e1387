"""How a word is planted."""

import pytest

from raison.core.errors import InputError
from raison.studies.kinds.shortcuts.work import LabelledTexts, planted

TEXTS = LabelledTexts(tuple(f"text {number}" for number in range(60)), tuple(number % 3 for number in range(60)))


@pytest.mark.parametrize("classes", [[1], [0, 1], [0, 1, 2]])
@pytest.mark.parametrize("count", [5, 6, 7, 10, 20])
def test_as_many_rows_whatever_the_number_of_classes(classes: list[int], count: int) -> None:
    found = planted(TEXTS, "zyxel", classes, count, 0)
    labels = [label for text, label in zip(found.texts, found.labels, strict=True) if text.endswith(" zyxel")]
    assert len(labels) == count
    assert set(labels) == set(classes)
    shares = [labels.count(label) for label in classes]
    assert max(shares) - min(shares) <= 1


def test_a_class_with_too_few_rows_is_refused() -> None:
    with pytest.raises(InputError, match="21 rows of one class should have the word, and 20 of the 60 rows"):
        planted(TEXTS, "zyxel", [1], 21, 0)
