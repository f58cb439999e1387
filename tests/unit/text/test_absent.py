"""Texts without some of their units."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raison.core.inputs.unit import Text, Unit
from raison.text.absent import without
from raison.text.segment import sentence_spans, word_spans

QUICK = settings(max_examples=100)
TEXT = "  The film,  as ever:\n\nwell-made. "


def words(text: str, segment: int = 0) -> list[Unit]:
    return [Unit(start, end, text[start:end], segment) for start, end in word_spans(text)]


def without_words(text: str, *absent: str, substitute: str | None = None) -> Text:
    units = words(text)
    return without(text, units, [unit.text not in absent for unit in units], substitute)


@pytest.mark.parametrize(
    ("absent", "left"),
    [
        (["The"], "  film,  as ever:\n\nwell-made. "),
        (["film"], "  The,  as ever:\n\nwell-made. "),
        (["as"], "  The film, ever:\n\nwell-made. "),
        (["well"], "  The film,  as ever:-made. "),
        (["."], "  The film,  as ever:\n\nwell-made "),
        (["The", "film", ","], "  as ever:\n\nwell-made. "),
        (["The", "film", ",", "as", "ever", ":", "well", "-", "made", "."], ""),
    ],
)
def test_a_deleted_word_takes_the_white_space_before_it_along(absent: list[str], left: str) -> None:
    assert without_words(TEXT, *absent) == left


@pytest.mark.parametrize(
    ("absent", "left"),
    [
        (["The"], "  [MASK] film,  as ever:\n\nwell-made. "),
        (["well", "-"], "  The film,  as ever:\n\n[MASK][MASK]made. "),
    ],
)
def test_a_substitute_leaves_all_white_space(absent: list[str], left: str) -> None:
    assert without_words(TEXT, *absent, substitute="[MASK]") == left


def test_an_empty_substitute_is_no_deletion() -> None:
    assert without_words("a b c", "b", substitute="") == "a  c"


def test_scripts_without_spaces() -> None:
    assert without_words("好电影", "电影") == "好"


def test_characters_of_no_unit_stay() -> None:
    text = "Title: Dune\nBody: sand"
    units = [Unit(7, 11, "Dune"), Unit(18, 22, "sand")]
    assert without(text, units, [False, True]) == "Title:\nBody: sand"
    assert without(text, units, [False, False]) == "Title:\nBody:"


def test_the_texts_of_a_pair_are_apart() -> None:
    pair = ("a b", "b c")
    units = [*words(pair[0]), *words(pair[1], 1)]
    assert without(pair, units, [True, False, False, True]) == ("a", "c")
    assert without(pair, units, [False, False, True, True]) == ("", "b c")
    assert without(pair, units, [True] * 4) == pair


@QUICK
@given(st.text(alphabet="ab .,\n\u3000好-", max_size=30), st.data(), st.sampled_from([None, "...", "_"]))
def test_what_is_kept_stays_in_its_order(text: str, data: st.DataObject, substitute: str | None) -> None:
    units = words(text)
    keep = data.draw(st.lists(st.booleans(), min_size=len(units), max_size=len(units)))
    left = without(text, units, keep, substitute)
    assert isinstance(left, str)
    if all(keep):
        assert left == text
    expected = [unit.text if stays else substitute or "" for unit, stays in zip(units, keep, strict=True)]
    assert "".join(left.split()) == "".join("".join(expected).split())


@QUICK
@given(st.lists(st.sampled_from(["Good.", "A bad one!", "Is it?"]), min_size=1, max_size=5), st.data())
def test_deleted_sentences_leave_the_others_as_they_are(sentences: list[str], data: st.DataObject) -> None:
    text = " ".join(sentences)
    units = [Unit(start, end, text[start:end]) for start, end in sentence_spans(text)]
    keep = data.draw(st.lists(st.booleans(), min_size=len(units), max_size=len(units)))
    kept = [unit.text for unit, stays in zip(units, keep, strict=True) if stays]
    assert without(text, units, keep) == " ".join(kept)


def literal(string: str, units: list[Unit], keep: list[bool], substitute: str | None) -> str:
    """Every unit walked in turn."""
    pieces, place = "", 0
    for unit, stays in zip(units, keep, strict=True):
        gap = string[place : unit.start]
        if stays:
            pieces += gap + unit.text
        else:
            pieces += gap.rstrip() if substitute is None else gap + substitute
        place = unit.end
    left = pieces + string[place:]
    if substitute is not None or all(keep):
        return left
    return string[: len(string) - len(string.lstrip())] + left.lstrip() if left.strip() else ""


@pytest.mark.parametrize("substitute", [None, "...", ""])
def test_as_by_walking_every_unit(substitute: str | None) -> None:
    random = Random(0)
    for _ in range(2000):
        string, units, place = "".join(random.choices("ab  \n.", k=random.randint(1, 24))), [], 0
        while (start := place + random.randint(0, 3)) < (place := start + random.randint(1, 4)) <= len(string):
            units.append(Unit(start, place, string[start:place]))
        keep = [random.random() < random.choice([0.0, 0.5, 0.9, 1.0]) for _ in units]
        assert without(string, units, keep, substitute) == literal(string, units, keep, substitute)
        both = (string, string)
        second = [replace(unit, segment=1) for unit in units]
        alone = literal(string, units, keep, substitute)
        assert without(both, [*units, *second], [*keep, *keep], substitute) == (alone, alone)
