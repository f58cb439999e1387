"""What a language model wrote is read strictly, whatever it wrote."""

import numpy as np
import pytest

from raison.text.questions import Subject, question
from raison.text.self_reports import read_self_report

UNITS = ["the", "film", "is", "not", "the", "best", "."]


def ranked(answer, units=UNITS):
    return read_self_report("rank", answer, units)


def scored(answer, units=UNITS):
    return read_self_report("score", answer, units)


def test_a_full_ranking():
    report = ranked("1. best\n2. not\n3. film\n4. .\n5. the\n6. is\n7. the")
    np.testing.assert_allclose(report.scores, np.array([3, 5, 2, 6, 1, 7, 4]) / 7)
    assert (report.invented, report.missing, report.repeated, report.unreadable) == (0, 0, 0, 0)


def test_units_that_are_not_mentioned_score_zero():
    report = ranked("1. best\n2. not")
    assert report.scores == (0, 0, 0, 6 / 7, 0, 1, 0)
    assert report.missing == pytest.approx(5 / 7)


def test_invented_units_are_counted_and_take_no_rank():
    report = ranked("1. wonderful\n2. best\n3. Best\n4. the best\n5. not")
    assert report.scores == (0, 0, 0, 6 / 7, 0, 1, 0)
    assert report.invented == 3 / 5


def test_equal_units_are_taken_in_the_order_of_the_text_and_once():
    report = ranked("1. the\n2. film\n3. the\n4. the\n5. film")
    assert report.scores == (1, 6 / 7, 0, 0, 5 / 7, 0, 0)
    assert report.repeated == 2
    assert report.invented == 0


def test_words_around_the_list_are_left_out():
    report = ranked('Sure! Here is the list:\n\n1. "best"\n2) **not**\n3: `film`\n\nI hope this helps: 4. is')
    assert report.scores == (0, 5 / 7, 0, 6 / 7, 0, 1, 0)
    assert report.unreadable == 2


def test_a_second_list_is_not_read():
    report = ranked("1. best\n2. not\n1. film\n2. is")
    assert report.scores == (0, 0, 0, 6 / 7, 0, 1, 0)
    assert report.unreadable == 2


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "\n \t\n",
        "the film is not the best .",
        "best, not, film",
        "1.best",
        "1 best",
        "- best",
        "I. best",
        "١. best",
        "1. ",
        "1.",
        "-1. best",
        "9999999. best",
        "1. best: 0.9",
        "1. best (very)",
        "1. BEST",
        "1. bes\u200bt",
        "1. ``best",
        '{"best": 1}',
        "1. " + "best " * 5000,
    ],
)
def test_a_ranking_that_names_no_unit_gives_nothing(answer):
    report = ranked(answer)
    assert not any(report.scores)
    assert report.missing == 1
    assert report.repeated == 0


def test_what_was_thought_is_left_out():
    assert ranked("<think>\n1. film\n</think>\n1. best").scores == ranked("1. best").scores
    assert ranked("thinking\n1. film\n</think>\n\n1. best").scores == ranked("1. best").scores
    assert ranked("<think>\n1. film\n2. is").missing == 1


def test_scores_with_and_without_numbers():
    report = scored("6. best: 1\n4. not: -0.75\n5. the: +.25\nfilm = 0.5\nis: 0.")
    assert report.scores == (0, 0.5, 0, -0.75, 0.25, 1, 0)
    assert report.missing == pytest.approx(2 / 7)
    assert report.invented == 0


def test_a_wrong_number_is_no_reason_to_lose_a_unit():
    """The number tells equal units apart; elsewhere the unit's name counts."""
    assert scored("1. best: 0.5\n2. the: 0.1").scores == (0.1, 0, 0, 0, 0, 0.5, 0)


@pytest.mark.parametrize(
    "answer",
    [
        "best: 1.01",
        "best: -2",
        "best: 90%",
        "best: nan",
        "best: inf",
        "best: 1e3",
        "best: 0,5",
        "best: ½",
        "best: 0.5 (strong)",
        "best 0.5",
        ": 0.5",
        "6. : 0.5",
        "best: --1",
        "best: 1/2",
        "1. great: 1",
    ],
)
def test_scores_that_break_the_form_give_nothing(answer):
    report = scored(answer)
    assert not any(report.scores)
    assert report.missing == 1


def test_numbers_and_signs_can_be_units():
    units = ["12:30", "=", "5", "1.", "good: bad"]
    report = scored("12:30: 0.5\n=: 0.25\n3. 5: -1\n1.: 0.125\ngood: bad: 1", units)
    assert report.scores == (0.5, 0.25, -1, 0.125, 1)
    assert ranked("1. 5\n2. 1.\n3. 12:30", units).scores == (0.6, 0, 1, 0.8, 0)


def test_quotes_of_the_text_itself_stay():
    units = ['"good"', "good", "'"]
    assert ranked('1. "good"\n2. \'', units).scores == (1, 0, 2 / 3)
    assert ranked('1. "\'"\n2. good', units).scores == (0, 2 / 3, 1)


def test_white_space_in_units_is_one_space():
    units = ["A dull\n  plot.", " It ends", ""]
    report = ranked("1. It  ends\n2. A dull plot.", units)
    assert report.scores == (2 / 3, 1, 0)
    assert report.missing == pytest.approx(1 / 3)


def test_hostile_answers_are_read_in_no_time():
    ranked("1. " + " " * 20000 + "x" * 20000)
    scored("x" + " :" * 5000 + " " * 5000 + "y")
    assert scored("\n".join("best: 0.5" for _ in range(10000))).repeated == 9999


def test_a_question_takes_the_text_as_it_is():
    text = "a {units} of {} {answer}"
    asked = question("rank", Subject(text, text.split(), "word", ("bad", "good"), "good"))
    assert asked.endswith(f"Text: {text}\nWords: a, {{units}}, of, {{}}, {{answer}}\nClass: good\nRanking:")
    assert "The classes are: bad, good." in asked
    asked = question("score", Subject("a\n b c", ["a\n b", "c"], "sentence", ("bad", "good"), "good"))
    assert asked.endswith("Text: a\n b c\nSentences:\n1. a b\n2. c\nClass: good\nScores:")


@pytest.mark.parametrize("unit", ["token", "word", "sentence"])
@pytest.mark.parametrize("form", ["rank", "score"])
def test_the_example_in_a_question_keeps_to_the_form(form, unit):
    """What the model is shown is what is read: the example's answer names each of its units once."""
    asked = question(form, Subject("nothing here", ["nothing", "here"], unit, ("bad", "good"), "good"))
    (before, example, _) = asked.split("\n\n")
    listed, answer = example.partition("\nRanking:\n" if form == "rank" else "\nScores:\n")[::2]
    shown = listed.partition("s:")[2].partition("\nClass:")[0].strip()
    units = shown.split(", ") if form == "rank" else [line.partition(". ")[2] for line in shown.splitlines()]
    report = read_self_report(form, answer, units)
    assert (report.missing, report.invented, report.repeated, report.unreadable) == (0, 0, 0, 0)
    assert len(units) >= 3
    assert "{" not in before


def test_long_runs_of_spaces_take_no_more_than_linear_time() -> None:
    report = read_self_report("score", f"a good{' ' * 200_000}film\na good film{' ' * 100_000}: 0.5", ["a good film"])
    assert (report.scores, report.unreadable) == ((0.5,), 1)
