"""Words and sentences as character spans."""

import time
from itertools import pairwise

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from raison.text.segment import sentence_spans, word_spans
from tests.conftest import ALL
from tests.patience import slowness

ATOMS = (
    *("a", "don't", "Dr. ", "J. ", "B", "U.S.", "3.14", "...", "!!", "?", ".", "'", '"', "-", "(", "_", "$"),
    *(" ", "  ", "\n", "\n\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "\u2029", "\x1c", "\x85"),
    *("\u0301", "e\u0301", "\u200d", "\u200b", "\u200c", "\ufe0f", "\x00", "\u0600", "\ufffd"),
    *("👩‍👩‍👧", "👍🏽", "🇩🇪", "🇫", "❤️", "מה", "שלום", "كتاب", "می‌", "海。", "ก", "ำ", "한국", "क्ष", "ﷺ"),
)
TEXTS = st.lists(st.sampled_from(ATOMS) | st.characters(exclude_categories=["Cs"]), max_size=15).map("".join)
QUICK = settings(max_examples=300 if ALL else 100)


def words(text: str) -> list[str]:
    return [text[start:end] for start, end in word_spans(text)]


def sentences(text: str, language: str = "en") -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text, language)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \t\n\u00a0", []),
        ("a", ["a"]),
        ("the cat the cat", ["the", "cat", "the", "cat"]),
        ("  Hello,  world!\n", ["Hello", ",", "world", "!"]),
        ("I don't, can’t", ["I", "don't", ",", "can’t"]),
        ("ca n't does n’t", ["ca", "n't", "does", "n’t"]),
        ("3.14 and 1,000", ["3.14", "and", "1,000"]),
        ("foo_bar e-mail C++", ["foo_bar", "e", "-", "mail", "C", "++"]),
        ("wait... what?!?! ---===", ["wait", "...", "what", "?", "!", "?", "!", "---", "==="]),
        (". . ..", [".", ".", ".."]),
        ("so —— …… 。。", ["so", "——", "……", "。。"]),
        (".\u0301. \u0600..", [".\u0301", ".", "\u0600.", "."]),
        ("'...'", ["'", "...", "'"]),
        ("👩‍👩‍👧👍🏽🇩🇪🇫🇷 ❤️", ["👩‍👩‍👧", "👍🏽", "🇩🇪", "🇫🇷", "❤️"]),
        ("😀😀", ["😀", "😀"]),
        ("he\u0301llo \u0301", ["he\u0301llo", "\u0301"]),
        ('שלום, מה"ש!', ["שלום", ",", 'מה"ש', "!"]),
        ("الكتاب جميل، هل", ["الكتاب", "جميل", "،", "هل"]),
        ("می‌خواهم کتاب", ["می‌خواهم", "کتاب"]),
        ("海很安静。", ["海", "很", "安静", "。"]),
        ("안녕하세요 여러분", ["안녕하세요", "여러분"]),
        ("カメラを", ["カメラ", "を"]),
        ("ทำดี", ["ทำ", "ดี"]),
        ("क्षत्रिय था", ["क्षत्रिय", "था"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert words(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\n ", []),
        ("no end", ["no end"]),
        ("Dr. Smith left. He slept!", ["Dr. Smith left.", "He slept!"]),
        ("The U.S. economy grew 3.5 percent. Really?", ["The U.S. economy grew 3.5 percent.", "Really?"]),
        ("😀😀 é ok.  Second one.", ["😀😀 é ok.", "Second one."]),
        ("A title\n\nA body.\n", ["A title", "A body."]),
        ("A title\r\n\r\nA body.", ["A title", "A body."]),
        ("A title\n \t\nA body.", ["A title", "A body."]),
        ("one line\nanother line", ["one line\nanother line"]),
        ("1. B one\r\n  1. C two", ["1. B one", "1. C two"]),
        ("海很安静。天很蓝！", ["海很安静。", "天很蓝！"]),
        ("هل قرأته؟ نعم.", ["هل قرأته؟", "نعم."]),
        ("A\u00a0one. B\u3000two.", ["A\u00a0one.", "B\u3000two."]),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@pytest.mark.parametrize("text", ["A\u00a0.", "Mr J.\u00a0K. Smith and B\u3000\u00a0.\u3000"])
def test_wide_space_near_an_initial_does_not_break_the_sentence_library(text: str) -> None:
    assert "".join(sentences(text)).split() == text.split()


def test_language_changes_the_abbreviations() -> None:
    text = "Das kostet ca. 5 Euro bzw. Mehr."
    assert sentences(text, "de") != sentences(text, "en")


@QUICK
@given(TEXTS)
def test_word_spans_cover_the_text_in_order(text: str) -> None:
    spans = word_spans(text)
    assert all(start < end for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))
    assert all(word == word.strip() for word in words(text))
    covered = {position for start, end in spans for position in range(start, end)}
    assert all(character.isspace() for position, character in enumerate(text) if position not in covered)


@QUICK
@given(TEXTS)
def test_no_word_ends_inside_a_grapheme_cluster(text: str) -> None:
    clusters = {match.end() for match in regex.finditer(r"\X", text)} | {0}
    for position in {position for span in word_spans(text) for position in span} - clusters:
        # White space is not part of a word, even where an accent sits on it.
        assert text[position - 1].isspace() or text[position].isspace()


@QUICK
@given(TEXTS)
def test_sentences_are_runs_of_whole_words(text: str) -> None:
    pieces = word_spans(text)
    starts, ends = [start for start, _ in pieces], [end for _, end in pieces]
    rest = 0
    for start, end in sentence_spans(text):
        assert starts.index(start) == rest
        rest = ends.index(end) + 1
    assert rest == len(pieces)


def test_long_text_takes_linear_time() -> None:
    text = "The cat didn't sit on the mat... It left! " * 5000
    began = time.process_time()
    assert len(word_spans(text)) == 11 * 5000
    assert len(sentence_spans(text)) == 2 * 5000
    assert time.process_time() - began < 20 * slowness()


def test_halves_of_characters_are_characters() -> None:
    """Some programs cut a text within an emoji."""
    text = "One \ud83d half. Two \udc00\ud83d."
    assert [text[start:end] for start, end in sentence_spans(text)] == ["One \ud83d half.", "Two \udc00\ud83d."]
    assert [text[start:end] for start, end in word_spans(text)][1] == "\ud83d"
