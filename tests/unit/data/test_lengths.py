"""Data sets of short texts: what is cut off, what is left out, and what cannot be cut."""

from dataclasses import replace

import pytest

from raison.core.errors import DataError
from raison.core.inputs.rationale import Span
from raison.data import Dataset, Row
from raison.data.lengths import at_most, first_words, words_in

TEXTS = ("  a slow,\tquiet film \n", "fine", "not bad at all, they said", "")
DATA = Dataset("films", tuple(Row(text, n % 2, n + 1) for n, text in enumerate(TEXTS)), sha256="abc", labels=("n", "y"))
PAIR = Row(("two words", "and three more"), None, 5)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (1, ("  a", "fine", "not", "")),
        (2, ("  a slow,", "fine", "not bad", "")),
        (3, ("  a slow,\tquiet", "fine", "not bad at", "")),
        # Cut after the fourth word, the first text loses the white space behind it.
        (4, ("  a slow,\tquiet film", "fine", "not bad at all,", "")),
        (6, TEXTS),
        (1000, TEXTS),
    ],
)
def test_the_first_words(words: int, expected: tuple[str, ...]) -> None:
    cut = first_words(DATA, words)
    assert cut.texts == expected
    assert cut.name == f"films, the first {words} words"
    assert replace(cut, name="films", rows=DATA.rows) == DATA
    assert [(row.label, row.number) for row in cut.rows] == [(row.label, row.number) for row in DATA.rows]


def test_pairs_are_not_cut() -> None:
    with pytest.raises(DataError, match="single texts"):
        first_words(replace(DATA, rows=(*DATA.rows, PAIR)), 3)


def test_marks_are_cut_with_their_text() -> None:
    marks = ((Span(0, 3), Span(4, 9), Span(12, 15)), ())
    marked = replace(DATA.rows[2], rationales=marks)
    (row,) = first_words(replace(DATA, rows=(marked,)), 2).rows
    assert row.text == "not bad"
    assert row.rationales == ((Span(0, 3), Span(4, 7)), ())


@pytest.mark.parametrize(("words", "kept"), [(6, [1, 2, 3, 4, 5]), (5, [1, 2, 4, 5]), (4, [1, 2, 4]), (1, [2, 4])])
def test_texts_of_at_most_so_many_words(words: int, kept: list[int]) -> None:
    whole = replace(DATA, rows=(*DATA.rows, PAIR))
    part = at_most(whole, words)
    assert [row.number for row in part.rows] == kept
    assert set(part.rows) <= set(whole.rows)
    assert part.name == f"films, texts of at most {words} words"
    assert replace(part, name="films", rows=whole.rows) == whole


def test_words_are_between_white_space() -> None:
    assert [words_in(text) for text in TEXTS] == [4, 1, 6, 0]
    assert words_in(("two words", " and  three more")) == 5
