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
