"""Spans that a caller gives, and how they are refused."""

import numpy as np
import pytest

from raison.core.errors import InputError
from raison.core.inputs.parts import PartedText, again, parted, plain, written
from raison.core.inputs.unit import Unit

TEXT = "good film, dull plot"


def test_spans_with_and_without_names() -> None:
    assert parted(TEXT, [(0, 9), (11, 20)]).parts == (Unit(0, 9, "good film"), Unit(11, 20, "dull plot"))
    found = parted(TEXT, {"first": [0, 9], "rest": np.array([11, 20])})
    assert [part.name for part in found.parts] == ["first", "rest"]
    assert plain(found) == TEXT
    assert again(TEXT, found.parts, "part") == found
    assert again(TEXT, found.parts, "word") == TEXT
    assert written(found) == {"text": TEXT, "units": [[0, 9, 0, "first"], [11, 20, 0, "rest"]]}
    assert written(TEXT) == TEXT


@pytest.mark.parametrize(
    ("spans", "said"),
    [
        ([], "no unit given"),
        ([(0, 9), (8, 20)], r"unit 1 \(8 to 20\) begins before unit 0 \(0 to 9\) ends"),
        ({"b": (11, 20), "a": (0, 9)}, "'a' begins before the unit 'b' ends: list units in the order of the text"),
        ([(3, 3)], "empty or blank"),
        ([(10, 11)], "empty or blank"),
        ([(9, 3)], "out of range"),
        ([(-2, 3)], "out of range"),
        ({"long": (0, 21)}, "the unit 'long' is out of range: 0 to 21 of a text of 20 characters"),
        ([(0, 3, 1)], "in text number 1, but there are 1"),
        ([(0,)], "a span is"),
        ([(0, 1.5)], "a span is"),
        ([(True, 3)], "a span is"),
        (["ab"], "a span is"),
        ([3], "a span is"),
        ("ab", "give"),
        (3, "give"),
        ({3: (0, 4)}, "is not a string"),
    ],
)
def test_what_is_no_part(spans: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        parted(TEXT, spans)


def test_parts_of_pairs_name_their_text() -> None:
    found = parted(("good film", "dull plot"), [(0, 4), (0, 4, 1)])
    assert [part.segment for part in found.parts] == [0, 1]
    with pytest.raises(InputError, match="begins before"):
        PartedText(found.text, found.parts[::-1])
