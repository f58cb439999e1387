"""The known-feature transform: what is inserted where, and what the labels then depend on."""

from collections import Counter
from itertools import pairwise

import pytest

from raison.core.errors import InputError
from raison.core.inputs.rationale import Span
from raison.data import Dataset, Row, known_features

ROWS = tuple(Row(f"it is film {number} of many", "old", number) for number in range(1, 2001))
DATA = Dataset("films/test", ROWS, sha256="abc")
WORDS = ("negative", "positive")


def marked(row: Row) -> str:
    """The text under the only span of the only annotator."""
    ((span,),) = row.rationales
    text = row.text if isinstance(row.text, str) else row.text[span.segment]
    return text[span.start : span.end]


def test_the_word_at_the_end_tells_the_label() -> None:
    made = known_features(DATA)
    for row, old in zip(made.rows, ROWS, strict=True):
        assert row.text == f"{old.text} {WORDS[row.label]}"
        assert marked(row) == WORDS[row.label]
        assert row.number == old.number
    assert made.labels == WORDS
    assert made.class_indices(("positive", "negative")) == tuple(1 - row.label for row in made.rows)
    assert made.name == "films/test+known_features(end, 1.0, seed 0)"
    assert made.sha256 == "abc"
    made.require_rationales()


def test_labels_are_drawn_uniformly_and_regardless_of_the_old_ones() -> None:
    old = Dataset("d", tuple(Row("a b", number % 2, number) for number in range(4000)))
    new = known_features(old)
    counts = Counter((before.label, after.label) for before, after in zip(old.rows, new.rows, strict=True))
    # Each of the four cells is expected to hold 1,000 rows, with a standard deviation of 27.
    assert all(abs(counts[pair] - 1000) < 110 for pair in ((0, 0), (0, 1), (1, 0), (1, 1)))


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        ("start", "W the film, was fun"),
        (0, "W the film, was fun"),
        (2, "the film, W was fun"),
        (4, "the film, was fun W"),
        (99, "the film, was fun W"),
        ("end", "the film, was fun W"),
    ],
)
def test_positions(position: str | int, expected: str) -> None:
    made = known_features(Dataset("d", (Row("the film, was fun", None, 1),)), position=position)
    row = made.rows[0]
    assert row.text == expected.replace("W", WORDS[row.label])
    assert marked(row) == WORDS[row.label]


def test_a_random_position_is_any_of_them() -> None:
    made = known_features(DATA, position="random")
    places = Counter(row.text.split().index(WORDS[row.label]) for row in made.rows)
    assert sorted(places) == [0, 1, 2, 3, 4, 5, 6]
    assert min(places.values()) > 2000 / 7 - 80
    for row, old in zip(made.rows, ROWS, strict=True):
        assert marked(row) == WORDS[row.label]
        words = row.text.split(" ")
        words.remove(WORDS[row.label])
        assert " ".join(words) == old.text


def test_white_space_of_the_text_stays() -> None:
    row = known_features(Dataset("d", (Row("two  lines \n of text ", None, 1),)), position="end").rows[0]
    assert row.text == f"two  lines \n of text {WORDS[row.label]}"
    row = known_features(Dataset("d", (Row(" two  lines", None, 1),)), position=1).rows[0]
    assert row.text == f" two  {WORDS[row.label]} lines"
    assert marked(row) == WORDS[row.label]


def test_correlation_is_the_share_of_rows_with_their_word() -> None:
    made = known_features(DATA, correlation=0.7)
    without = [row for row in made.rows if row.rationales == ((),)]
    assert abs(len(without) - 600) < 90
    texts = {row.number: row.text for row in ROWS}
    assert all(row.text == texts[row.number] for row in without)
    with_word = [row for row in made.rows if row.rationales != ((),)]
    assert all(row.text.endswith(WORDS[row.label]) and marked(row) == WORDS[row.label] for row in with_word)
    # Among the rows without a word, the labels are still random.
    assert abs(sum(row.label for row in without) - len(without) / 2) < 50
    assert made.has_rationales


def test_a_row_depends_on_its_number_and_the_seed_alone() -> None:
    whole = known_features(DATA, correlation=0.5, position="random", seed=3)
    part = known_features(Dataset("d", ROWS[40:50]), correlation=0.5, position="random", seed=3)
    assert part.rows == whole.rows[40:50]
    labels = [[row.label for row in known_features(DATA, seed=seed).rows] for seed in (0, 1, 2)]
    assert all(first != second for first, second in pairwise(labels))


def test_the_draw_is_the_same_in_every_release() -> None:
    # Written down once: results of studies would change with it.
    assert "".join(str(row.label) for row in known_features(DATA).rows[:20]) == "11101111000100011010"


def test_a_pair_gets_the_word_in_its_second_text() -> None:
    row = known_features(Dataset("d", (Row(("a man sleeps", "he rests"), "x", 5),))).rows[0]
    word = WORDS[row.label]
    assert row.text == ("a man sleeps", f"he rests {word}")
    assert row.rationales == ((Span(9, 9 + len(word), 1),),)


def test_any_number_of_words() -> None:
    made = known_features(DATA, ("red", "green", "blue"), position=1, correlation=0.9, seed=7)
    assert {row.label for row in made.rows} == {0, 1, 2}
    assert made.labels == ("red", "green", "blue")
    assert made.name == "films/test+known_features(red|green|blue, 1, 0.9, seed 7)"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"words": ("one",)}, "two or more"),
        ({"words": "ab"}, "two or more"),
        ({"words": ("one", " ")}, "not one word"),
        ({"words": ("one", "")}, "not one word"),
        ({"words": ("one", "two three")}, "not one word"),
        ({"words": ("one", "one")}, "twice"),
        ({"correlation": 0.0}, r"\(0, 1\]"),
        ({"correlation": 1.5}, r"\(0, 1\]"),
        ({"correlation": float("nan")}, r"\(0, 1\]"),
        ({"position": "middle"}, "unknown position 'middle'.*end, random, start"),
        ({"position": "strat"}, "Did you mean 'start'"),
        ({"position": -1}, "negative"),
    ],
)
def test_settings_that_cannot_be(settings: dict[str, object], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        known_features(DATA, **settings)
