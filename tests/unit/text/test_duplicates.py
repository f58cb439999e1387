"""Texts that share most of their runs of five words."""

import pytest

from raison.text.duplicates import near_duplicates

TEXT = "Ada Holm opened the shop by the river in 1921, and it sold tea until the war."


@pytest.mark.parametrize(
    "other",
    [
        TEXT,
        TEXT.upper(),
        f"As one account has it: {TEXT} It has narrow streets around it.",
        "Ada Holm opened the shop by the river in 1921!",
        TEXT.replace("war", "flood"),
    ],
)
def test_near_duplicates(other: str) -> None:
    assert near_duplicates([TEXT, "Owls hunt at night.", other]) == ((0, 2), (1,), (0, 2))


@pytest.mark.parametrize(
    "other", ["By the river Ada opened a shop that sold tea in 1921.", "Ada Holm opened it.", "...", ""]
)
def test_texts_that_share_words_alone_are_not(other: str) -> None:
    assert near_duplicates([TEXT, other]) == ((0,), (1,))


def test_a_duplicate_of_a_duplicate_belongs_to_it() -> None:
    first, last = "one two three four five six seven", "six seven eight nine ten eleven twelve"
    middle = f"{first} eight nine ten eleven twelve"
    assert near_duplicates([first, last]) == ((0,), (1,))
    assert near_duplicates([first, middle, last]) == ((0, 1, 2),) * 3


def test_half_of_the_runs_is_enough_and_less_is_not() -> None:
    words = [f"w{n}" for n in range(13)]
    # Nine runs against those of a text that begins alike.
    for kept, alike in ((9, True), (8, False)):
        other = [*words[:kept], *(f"x{n}" for n in range(13 - kept))]
        assert (near_duplicates([" ".join(words), " ".join(other)])[0] == (0, 1)) is alike
