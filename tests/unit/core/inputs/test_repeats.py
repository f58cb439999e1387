"""Texts that are given more than once."""

from raison.core.inputs.parts import parted
from raison.core.inputs.repeats import caution_of_repeats, distinct


def test_a_repeat_has_the_same_text_and_the_same_target() -> None:
    texts = ["a", "b", "a", ("a", "b"), ("a", "b"), "b"]
    assert distinct(texts) == [0, 1, 3]
    assert distinct(texts, 1) == [0, 1, 3], "one target for all texts"
    assert distinct(texts, [0, 0, 1, 0, 0, 0]) == [0, 1, 2, 3]


def test_other_units_make_another_text() -> None:
    texts = [parted("a sea", [(0, 1)]), parted("a sea", [(2, 5)]), parted("a sea", [(0, 1)])]
    assert distinct(texts) == [0, 1]


def test_the_caution_counts_repeats() -> None:
    assert caution_of_repeats(3, 3) == ()
    assert caution_of_repeats(3, 2)[0].startswith("1 of 3 texts repeats others")
