"""The accuracy on a study's own data: which texts, which names, and how many passes."""

import numpy as np
import pytest

import raison
from raison.core.model import LanguageModel
from raison.data.dataset import Dataset, Row
from raison.studies.measured_accuracy import accuracy_on, labelled_sample

CLASSES = ("negative", "positive")
TEXTS = [f"{'good' if number % 3 else 'dull'} film number {number}" for number in range(30)]


def model(classes: tuple[str, ...] = CLASSES) -> LanguageModel:
    """Positive is every text with the word good."""

    def predicted(texts: list[str]) -> np.ndarray:
        good = np.array(["good" in text for text in texts], dtype=float)
        return np.stack([1 - good, good], axis=1)

    return raison.load(predicted, classes=list(classes))


def data(labels: list[str | int | None], names: tuple[str, ...] = ()) -> Dataset:
    return Dataset(
        "d", tuple(Row(text, label, i) for i, (text, label) in enumerate(zip(TEXTS, labels, strict=True))), labels=names
    )


def test_data_that_are_sorted_by_label_are_drawn_from_everywhere() -> None:
    # The model is right on the first half only, and wrong on the other.
    right = ["positive" if number % 3 else "negative" for number in range(30)]
    wrong = ["negative" if number % 3 else "positive" for number in range(30)]
    sample = labelled_sample(model(), data([*right[:15], *wrong[15:]]), (), 20)
    assert sample is not None
    assert len(set(sample.texts)) == 20
    assert 0.2 < accuracy_on(model(), sample, lambda _: None) < 0.8
    whole = labelled_sample(model(), data([*right[:15], *wrong[15:]]), (), 1000)
    assert whole is not None
    told: list[int] = []
    assert accuracy_on(model(), whole, told.append) == 0.5
    assert sum(told) == 30


@pytest.mark.parametrize(
    ("labels", "names", "given", "classes", "accuracy"),
    [
        (["positive"] * 30, (), (), CLASSES, 20 / 30),
        (["POSITIVE"] * 30, (), (), CLASSES, 20 / 30),
        ([0, *[1] * 29], (), (), CLASSES, 21 / 30),
        ([1] * 30, (), (), CLASSES, None),
        ([0] * 30, ("positive", "negative"), (), CLASSES, 20 / 30),
        ([1] * 30, ("bad", "fine"), (), ("LABEL_0", "LABEL_1"), 20 / 30),
        (["fine"] * 30, ("bad", "fine"), (), ("LABEL_0", "LABEL_1"), 20 / 30),
        (["fine"] * 30, (), ("bad", "fine"), CLASSES, 20 / 30),
        (["bad"] * 30, (), ("bad", "fine"), ("x", "y"), 10 / 30),
        (["fine"] * 30, (), (), CLASSES, None),
        ([None, *["positive"] * 29], (), (), CLASSES, None),
    ],
)
def test_labels_are_classes_of_the_model_by_any_of_their_names(
    labels: list[str | int | None],
    names: tuple[str, ...],
    given: tuple[str, ...],
    classes: tuple[str, ...],
    accuracy: float | None,
) -> None:
    sample = labelled_sample(model(classes), data(labels, names), given, 1000)
    if accuracy is None:
        assert sample is None
        return
    assert sample is not None
    assert accuracy_on(model(classes), sample, lambda _: None) == pytest.approx(accuracy, abs=1e-4)


def test_texts_that_cannot_be_read_are_left_out() -> None:
    rows = [Row("good film", "positive", 0), Row("  ", "positive", 1), Row("dull film", "positive", 2)]
    sample = labelled_sample(model(), Dataset("d", tuple(rows)), (), 1000)
    assert sample is not None
    assert sorted(sample.texts) == ["dull film", "good film"]
    assert labelled_sample(model(), Dataset("d", tuple(rows[1:2])), (), 1000) is None


def test_a_number_has_no_accuracy() -> None:
    number = raison.load(lambda texts: [float(len(text)) for text in texts], classes=["length"])
    assert labelled_sample(number, data(["positive"] * 30), (), 1000) is None
