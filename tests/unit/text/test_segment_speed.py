"""Splitting takes time with the length of a text, whatever is in it: all of it is split before anything is cut off."""

import time
from collections.abc import Callable

import pytest
import regex

from raison.text import segment
from raison.text.segment import CharacterSpan, sentence_spans, word_spans
from raison.text.units import find_units

SHAPES = {
    "flags": "🇩🇪",
    "one letter of a flag": "🇩",
    "flags with accents": "🇩\u0301",
    "spaces": " ",
    "Chinese sentences": "海。",
    "accents": "e\u0301",
    "one accented letter": "\u0301",
    "joined emoji": "👩‍👩‍👧",
    "joiners": "\u200d",
    "one long word": "a",
    "newlines": "\n",
    "paragraphs": "One. Two.\n\n",
    "digits": "1",
    "numbers": "1.",
    "dots": ".",
    "quotes": '"',
    "open quotes": "“a ",
    "brackets": "(",
    "right to left": "كان ",
    "Thai": "ทะเล",
    "Devanagari": "क्",
    "initials": "J. ",
    "abbreviations": "Dr. ",
    "mixed": "a. 海🇩🇪\n",
}
SHORT = 1_000
SPLITTERS: dict[str, Callable[[str], object]] = {
    "token": lambda text: units(text, "token"),
    "word": lambda text: units(text, "word"),
    "sentence": lambda text: units(text, "sentence"),
}


def units(text: str, unit: str) -> object:
    return find_units(text, [(start, start + 1) for start in range(len(text))], [0] * len(text), unit)


def seconds(split: Callable[[str], object], text: str) -> float:
    start = time.process_time()
    split(text)
    return time.process_time() - start


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("unit", SPLITTERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_four_times_the_text_takes_about_four_times_as_long(
    shape: str, unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Quadratic would be sixteen times. The best of some tries counts: other processes only take time away."""
    monkeypatch.setattr(segment, "WINDOW", 512)
    piece, split = SHAPES[shape], SPLITTERS[unit]
    short, long = ("x " + (piece * length)[:length] + " x" for length in (SHORT, 4 * SHORT))
    assert any(seconds(split, long) < 9 * max(seconds(split, short), 0.001) for _ in range(5))


@pytest.mark.parametrize("mark", ["\u200d", "\u0301", "\xad"])
def test_a_flag_does_not_join_what_follows_it(mark: str) -> None:
    assert word_spans(f"🇩{mark}🇪a") == [(0, 3), (3, 4)]


LETTERS = ["🇩", "🇪", "a", "1", " ", "👩", "。", "\u0600", "'", ".", "\n", "§", "か"]


@pytest.mark.parametrize("seed", range(5))
def test_stand_ins_for_flags_change_no_word(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import random

    rng = random.Random(seed)
    texts = ["".join(rng.choices(LETTERS, k=rng.randint(1, 14))) for _ in range(300)]
    # An accent goes with what stands before it, on a flag as well; between the letters of one it would part them.
    texts += [text.replace("🇩🇪", "🇩🇪\u0301") for text in texts]
    texts = [text for text in texts if not regex.search(r"\p{RI}\u0301\p{RI}", text)]
    found = [word_spans(text) for text in texts]
    monkeypatch.setattr(segment, "without_flags", lambda flag, text: text)
    assert found == [word_spans(text) for text in texts]


def test_long_texts_have_the_sentences_of_their_parts() -> None:
    paragraphs = [
        'He said: "Stop. Now." She did not. ' * 40 + "\n\n",
        "Dr. Smith paid $3.50 (too much). It rained! " * 30 + "\n\n",
    ]
    text = "".join(paragraphs * 16)
    assert len(text) > 2 * segment.WINDOW
    expected: list[CharacterSpan] = []
    start = 0
    for paragraph in paragraphs * 16:
        expected += [(start + a, start + b) for a, b in sentence_spans(paragraph)]
        start += len(paragraph)
    assert sentence_spans(text) == expected


def test_a_text_without_the_end_of_a_sentence_is_cut_after_a_word() -> None:
    text = "word " * 10_000
    found = sentence_spans(text)
    assert len(found) == 4
    assert all(text[start:end].split() == ["word"] * ((end - start + 1) // 5) for start, end in found)
