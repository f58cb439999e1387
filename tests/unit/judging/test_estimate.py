"""The cost of a comparison, by what of the texts is explained."""

import pytest

from raison.core.errors import InputError
from raison.explaining.settings import Settings
from raison.judging.estimate import Estimate, estimate
from raison.models.loading.load import load
from tests.tiny import build

PAIRS = [("a very long and dull film indeed", "not dull"), ("the end", "never ending")]


def told(**options: object) -> Estimate:
    return estimate(load(*build("bert")), PAIRS, ["occlusion"], ["comprehensiveness"], **options)


def test_of_all_words_and_of_one_side() -> None:
    whole, second = told(), told(units="second")
    assert (whole.mean_units, second.mean_units) == (6.5, 2)
    assert second.forwards["occlusion"] < whole.forwards["occlusion"]


def test_of_spans_and_sentences() -> None:
    assert told(units=[[(0, 6), (7, 11)], [(0, 3)]]).mean_units == 1.5
    assert told(settings=Settings("sentence"), language="de").mean_units == 2
    with pytest.raises(InputError, match="language= applies to sentences only"):
        told(language="de")


def test_each_label_of_a_text_is_counted() -> None:
    model = load(*build("bert", ("anger", "joy", "love"), "multi_label_classification"))
    texts, target = ["a dull plot", "the end is good"], Settings(target="each")
    one = estimate(model, texts, ["occlusion", "saliency"], ["comprehensiveness"])
    every = estimate(model, texts, ["occlusion", "saliency"], ["comprehensiveness"], target, threshold=0)
    assert (one.texts, every.texts) == (2, 6)
    assert every.forwards == {label: 3 * count for label, count in one.forwards.items()}
    assert every.backwards == {label: 3 * count for label, count in one.backwards.items()}
    assert every.total_forwards == 3 * one.total_forwards
    with pytest.raises(InputError, match="no prediction reaches 100 % in any text"):
        estimate(model, texts, "occlusion", None, target, threshold=1)
    with pytest.raises(InputError, match="add target='each', or leave threshold out"):
        estimate(model, texts, "occlusion", None, threshold=0.5)
