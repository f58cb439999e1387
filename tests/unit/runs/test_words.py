"""Words over a data set: a planted shortcut is found, chance alone is not, and intervals are those of the texts."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from raison.core.errors import InputError, UnknownNameError
from raison.core.results.explanation import Explanation
from raison.numerics.statistics.bootstrap import mean_interval
from raison.runs.overview import parts_of
from raison.runs.words import decisive, words_of
from tests.explained import of_words

VOCABULARY = [f"w{number}" for number in range(40)]


def by_chance(texts: int, seed: int) -> list[Explanation]:
    """Random words with random scores: nothing decides more often than by chance."""
    rng = np.random.default_rng(seed)
    drawn = [rng.choice(VOCABULARY, size=rng.integers(4, 12)) for _ in range(texts)]
    return [of_words(" ".join(words), rng.normal(size=len(words))) for words in drawn]


def with_shortcut(explanations: Sequence[Explanation], rows: Sequence[int], word: str) -> list[Explanation]:
    """The same with a word at the end of some texts, whose score is the highest there."""
    planted = list(explanations)
    for row in rows:
        e = planted[row]
        planted[row] = of_words(f"{e.text} {word}", [*e.scores, 1 + max(map(abs, e.scores))])
    return planted


def test_a_shortcut_in_one_percent_of_the_rows_is_the_only_finding() -> None:
    rows = list(range(0, 1000, 100))
    [found] = decisive(with_shortcut(by_chance(1000, 0), rows, "Zyx"))
    assert (found.word, found.decided, found.texts) == ("zyx", 10, tuple(rows))
    assert found.expected < 2.5
    assert found.corrected == pytest.approx(found.p * 41)


def test_false_alarms_are_as_rare_as_promised() -> None:
    alarms = sum(bool(decisive(by_chance(60, seed), level=0.2)) for seed in range(100))
    # Holm's bound is 20 of 100 on average; above 32 in 1 of 500 cases.
    assert alarms <= 32


def test_p_is_the_share_of_shuffled_scores_with_as_many_decided_texts() -> None:
    texts, word = ["x a b", "x x c d", "e x f g h"], "x"
    rng = np.random.default_rng(1)
    reached = [0] * 4
    for _ in range(4000):
        tops = sum(text.split()[rng.integers(len(text.split()))] == word for text in texts)
        for count in range(tops + 1):
            reached[count] += 1
    scored = [of_words(text, [1.0 if place == 0 else 0.0 for place in range(len(text.split()))]) for text in texts[:2]]
    scored.append(of_words(texts[2], [1.0, 0, 0, 0, 0]))
    [found] = [one for one in decisive(scored, least=3, level=0.999) if one.word == word]
    assert found.decided == 2
    assert found.p == pytest.approx(reached[2] / 4000, abs=0.03)
    assert found.expected == pytest.approx(1 / 3 + 1 / 2 + 1 / 5)


@pytest.mark.parametrize(
    ("text", "scores"),
    [("x", [1.0]), ("x a", [1.0, 1.0]), ("x a", [-1.0, -2.0]), ("x a", [0.0, 0.0]), ("x a", [1.0, float("nan")])],
    ids=["one unit", "a tie", "below zero", "zero", "no number"],
)
def test_texts_that_nothing_decides_are_left_out(text: str, scores: list[float]) -> None:
    deciding = [of_words("X a b c d e f g h i", [1.0, *[0.0] * 9])] * 5
    with_others = decisive([*deciding, *[of_words(text, scores)] * 20])
    assert with_others == decisive(deciding)
    assert [(one.word, one.decided) for one in with_others] == [("x", 5)]


def test_rare_words_are_not_tested() -> None:
    few = [of_words("x a b c d e f g h i", [1.0, *[0.0] * 9])] * 4
    assert decisive(few) == ()
    assert [one.word for one in decisive(few, least=4)] == ["x"]


def test_words_of_a_class_have_the_mean_and_interval_of_their_texts() -> None:
    positive = [of_words("Good film good", [0.2 + 0.1 * row, -0.1, 0.1]) for row in range(6)]
    other = [replace(of_words("good film", [9.0, 9.0]), target="negative")] * 6
    against = [replace(of_words("good film", [9.0, 9.0]), against="negative")] * 6
    first, second = words_of([*positive, *other, *against], "positive")
    assert (first.word, second.word) == ("good", "film")
    expected = mean_interval([0.3 + 0.1 * row for row in range(6)])
    assert (first.mean, first.low, first.high) == pytest.approx(expected)
    assert first.texts == tuple(range(6))
    assert second.mean == pytest.approx(-0.1)
    assert words_of(positive, "positive", least=7) == ()
    assert [one.word for one in words_of(positive, "positive", most=1)] == ["good"]


def test_sequences_are_neighbours_of_one_string() -> None:
    pairs = [of_words(("Not good", "good film"), [-0.5, 0.2, 0.1, 0.0])] * 5
    found = {one.word: one.mean for one in words_of(pairs, "positive", length=2)}
    assert found == pytest.approx({"not good": -0.3, "good film": 0.1})


def test_places_are_shares_of_the_sizes_of_the_scores() -> None:
    long = [of_words("a b c d e f g h i j", [2.0, -1.0, 0, 0, 0, 0, 0, 0, 0, 1.0])] * 5
    left_out = [of_words("a b", [1.0, 0.0]), of_words("a b c d e"), of_words(("a b c", "d e"), [1.0] * 5)] * 5
    assert [part.mean for part in parts_of([*long, *left_out], "positive")] == pytest.approx([0.75, 0, 0, 0, 0.25])
    assert parts_of(long[:4], "positive") == ()


def test_settings_out_of_range_are_refused() -> None:
    for refused in (
        lambda: decisive([], least=0),
        lambda: decisive([], level=1.0),
        lambda: words_of([], "x", least=0),
        lambda: words_of([], "x", length=0),
    ):
        with pytest.raises(InputError):
            refused()


def test_a_class_that_no_explanation_has_is_named() -> None:
    explanations = [of_words("a dull plot", [0.1, 0.5, 0.2])] * 6
    with pytest.raises(UnknownNameError, match="positiv"):
        words_of(explanations, "positiv")
