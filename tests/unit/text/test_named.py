"""Tokens to the parts that a caller names, or that were found."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raison.core.errors import InputError
from raison.core.inputs.parts import PartedText, parted
from raison.core.inputs.unit import PART
from raison.text.named import extended, named_units
from raison.text.segment import word_spans
from raison.text.units import find_units
from tests.tokenizers import TOKENIZERS
from tests.unit.text.test_units import QUICK, TEXTS, tokenize

TEXT = "good film\n\na quiet, terrible one"


def units_of(text: PartedText, offsets: list[tuple[int, int]]) -> tuple[list[str], tuple[int, ...]]:
    units, numbers = named_units(text, offsets, [0] * len(offsets), False)
    return [unit.text for unit in units], numbers


@pytest.mark.parametrize("name", TOKENIZERS)
def test_parts_of_every_tokenizer(name: str) -> None:
    offsets, owners = tokenize(name, TEXT)
    text = parted(TEXT, {"title": (0, 9), "body": (11, 32)})
    units, numbers = find_units(text, offsets, owners, PART)
    assert [(unit.name, unit.text) for unit in units] == [("title", "good film"), ("body", "a quiet, terrible one")]
    assert set(numbers) - {-1} == {0, 1}
    assert [number for number in numbers if number >= 0] == sorted(number for number in numbers if number >= 0)
    for (start, end), owner, number in zip(offsets, owners, numbers, strict=True):
        if owner == 0 and TEXT[start:end].strip():
            assert number == (0 if start < 9 else 1)


@QUICK
@given(text=TEXTS.filter(str.strip), places=st.tuples(st.floats(0, 1), st.floats(0, 1)))
@pytest.mark.parametrize("name", TOKENIZERS)
def test_tokens_of_a_part_are_those_with_its_characters(name: str, text: str, places: tuple[float, float]) -> None:
    start, end = sorted(round(place * len(text)) for place in places)
    if not text[start:end].strip():
        return
    offsets, owners = tokenize(name, text)
    held = [n for n, (a, b) in enumerate(offsets) if owners[n] == 0 and max(a, start) < min(b, end)]
    if not held:
        with pytest.raises(InputError, match="has no token"):
            find_units(parted(text, [(start, end)]), offsets, owners, PART)
        return
    [unit], numbers = find_units(parted(text, [(start, end)]), offsets, owners, PART)
    assert unit.start <= start < end <= unit.end
    for (first, last), owner, number in zip(offsets, owners, numbers, strict=True):
        core = text[first:last].strip()
        if owner == 0 and core:
            first += text[first:last].index(core[0])
            assert (number == 0) == (first < unit.end and first + len(core) > unit.start)
        if owner == -1:
            assert number == -1


def test_a_span_that_cuts_a_token_is_extended() -> None:
    text = parted("terrible film", [(0, 5)])
    units, numbers = named_units(text, [(0, 8), (9, 13)], [0, 0], False)
    assert [unit.text for unit in units] == ["terrible"]
    assert numbers == (0, -1)
    assert extended(text, units) == (0,)
    assert extended(parted("terrible film", [(0, 8)]), units) == ()


def test_two_parts_that_meet_inside_a_token_are_refused() -> None:
    text = parted("terrible film", {"one": (0, 5), "two": (5, 13)})
    with pytest.raises(InputError, match=r"'one' and the unit 'two' meet inside the token 'terrible' \(0 to 8\)"):
        named_units(text, [(0, 8), (9, 13)], [0, 0], False)


def test_white_space_and_empty_tokens_belong_where_they_lie() -> None:
    text = parted("a  b c", [(0, 4)])
    offsets = [(0, 1), (1, 2), (2, 2), (2, 4), (4, 5), (5, 6)]
    assert units_of(text, offsets) == (["a  b"], (0, 0, 0, 0, -1, -1))


def test_a_part_without_a_token_is_refused_and_one_that_was_cut_off_is_left_out() -> None:
    text = parted("good film here", {"one": (0, 4), "two": (5, 14)})
    with pytest.raises(InputError, match="the unit 'two' has no token"):
        named_units(text, [(0, 4)], [0], False)
    units, numbers = named_units(text, [(0, 4)], [0], True)
    assert ([unit.name for unit in units], numbers) == (["one"], (0,))
    units, numbers = named_units(text, [(0, 4), (5, 9)], [0, 0], True)
    assert [unit.text for unit in units] == ["good", "film"]


def test_a_text_without_parts_has_no_unit_of_this_kind() -> None:
    with pytest.raises(InputError, match="has no parts of its own"):
        find_units("good film", [(0, 4)], [0], PART)


def test_pairs_have_parts_in_both_texts() -> None:
    text = parted(("a film", "it is good"), {"what": (2, 6, 0), "how": (6, 10, 1)})
    offsets, owners = [(0, 0), (0, 1), (2, 6), (0, 0), (0, 2), (3, 5), (6, 10)], [-1, 0, 0, -1, 1, 1, 1]
    units, numbers = named_units(text, offsets, owners, False)
    assert [(unit.segment, unit.text) for unit in units] == [(0, "film"), (1, "good")]
    assert numbers == (-1, -1, 0, -1, -1, -1, 1)


@QUICK
@given(text=TEXTS.filter(str.strip))
@pytest.mark.parametrize("name", TOKENIZERS)
def test_found_words_become_the_units_of_words(name: str, text: str) -> None:
    offsets, owners = tokenize(name, text)
    words, numbers = find_units(text, offsets, owners, "word")
    spoken = [text[start:end].strip() for (start, end), owner in zip(offsets, owners, strict=True) if owner == 0]
    if not any(spoken):
        return
    found = replace(parted(text, word_spans(text)), found=True)
    units, own = find_units(found, offsets, owners, PART)
    assert units == words
    # White space goes with the word before it or after it.
    cores = [n for n, (a, b) in enumerate(offsets) if owners[n] == 0 and text[a:b].strip()]
    assert [own[n] for n in cores] == [numbers[n] for n in cores]


def test_parts_of_a_caller_are_not_joined() -> None:
    words = word_spans("love it👍")
    assert words == [(0, 4), (5, 7), (7, 8)]
    offsets = [(0, 4), (5, 8)]
    with pytest.raises(InputError, match="meet inside the token"):
        units_of(parted("love it👍", words), offsets)
    found = replace(parted("love it👍", words), found=True)
    assert units_of(found, offsets) == (["love", "it👍"], (0, 1))
