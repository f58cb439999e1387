"""From tokens to units, with tokenizers of every common kind."""

import time
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from raison.core.inputs.unit import SPLITS, Granularity, Text, Unit, segments
from raison.text.units import find_units
from tests.conftest import ALL
from tests.patience import slowness
from tests.tokenizers import TOKENIZERS

ATOMS = (
    *("a", "don't", "The ", "story", " n't", "Dr. ", "U.S.", "3.14", "...", "!!", "?", ".", "'", "-", "_", "▁"),
    *(" ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "\x1c", "\x85"),
    *("\u0301", "e\u0301", "\u200d", "\u200b", "\u200c", "\ufe0f", "\x00", "\x07", "\u0600", "\ufffd"),
    *("👩‍👩‍👧", "👍🏽", "🇩🇪", "🇫", "❤️", "מה", "שלום", "كتاب", "می‌", "海。", "ก", "ำ", "한국", "क्ष", "ﷺ", "ﬁ", "½"),
    *("<s>", "</s>", " <mask>", "[MASK]", "<unk>", "<|endoftext|>", "<0x41>"),
)
TEXTS = st.lists(st.sampled_from(ATOMS) | st.characters(exclude_categories=["Cs"]), max_size=12).map("".join)
QUICK = settings(max_examples=60 if ALL else 20)

Tokens = tuple[list[tuple[int, int]], list[int]]


def tokenize(name: str, text: Text, max_length: int | None = None) -> Tokens:
    """Offsets and segments of the tokens."""
    encoding = TOKENIZERS[name]()(
        *segments(text), return_offsets_mapping=True, truncation=max_length is not None, max_length=max_length
    )
    return encoding["offset_mapping"], [-1 if part is None else part for part in encoding.sequence_ids(0)]


def unit_texts(name: str, text: Text, unit: Granularity, max_length: int | None = None) -> list[str]:
    return [found.text for found in find_units(text, *tokenize(name, text, max_length), unit)[0]]


def check_contract(text: Text, tokens: Tokens, unit: Granularity) -> None:
    """What holds for every text, tokenizer and unit."""
    offsets, owners = tokens
    units, unit_ids = find_units(text, offsets, owners, unit)
    strings = segments(text)
    assert len(unit_ids) == len(offsets)
    assert [number == -1 for number in unit_ids] == [owner == -1 for owner in owners]
    assert set(unit_ids) - {-1} == set(range(len(units)))
    for found in units:
        assert 0 <= found.start <= found.end <= len(strings[found.segment])
        assert found.text == strings[found.segment][found.start : found.end]
        assert found.text.strip() in ("", found.text)
    for before, after in pairwise(units):
        assert (before.segment, before.end) <= (after.segment, after.start) or before.segment < after.segment
        assert unit == "token" or before.segment < after.segment or (before.text.strip() and after.text.strip())
    scored = [number for number in unit_ids if number >= 0]
    assert scored == sorted(scored)
    for (start, end), owner, number in zip(offsets, owners, unit_ids, strict=True):
        if owner >= 0:
            check_token(strings[owner], start, end, units[number], owner)


def check_token(string: str, start: int, end: int, found: Unit, owner: int) -> None:
    """The token's characters lie in its unit, so that no two units can share them."""
    assert found.segment == owner
    assert all(found.start <= position < found.end for position in range(start, end) if not string[position].isspace())


@pytest.mark.parametrize("unit", SPLITS)
@pytest.mark.parametrize("name", TOKENIZERS)
@QUICK
@given(text=TEXTS)
def test_contract_on_single_texts(name: str, unit: Granularity, text: str) -> None:
    check_contract(text, tokenize(name, text), unit)


@pytest.mark.parametrize("unit", SPLITS)
@pytest.mark.parametrize("name", TOKENIZERS)
@QUICK
@given(text=st.tuples(TEXTS, TEXTS), max_length=st.integers(6, 20))
def test_contract_on_truncated_pairs(name: str, unit: Granularity, text: tuple[str, str], max_length: int) -> None:
    check_contract(text, tokenize(name, text, max_length), unit)


@pytest.mark.parametrize("unit", SPLITS)
@QUICK
@given(text=TEXTS, spans=st.lists(st.tuples(st.integers(0, 12), st.integers(0, 5)), max_size=10))
def test_contract_on_arbitrary_ascending_spans(unit: Granularity, text: str, spans: list[tuple[int, int]]) -> None:
    size = len(text)
    offsets = sorted((min(start, size), min(start + width, size)) for start, width in spans)
    units, unit_ids = find_units(text, offsets, [0] * len(offsets), unit)
    assert set(unit_ids) == set(range(len(units)))
    assert all(before.end <= after.start for before, after in pairwise(units))
    for (start, end), number in zip(offsets, unit_ids, strict=True):
        if text[start:end].strip():
            check_token(text, start, end, units[number], 0)


@pytest.mark.parametrize("name", TOKENIZERS)
@QUICK
@given(text=TEXTS)
def test_larger_units_hold_whole_smaller_ones(name: str, text: str) -> None:
    tokens = tokenize(name, text)
    for fine, coarse in pairwise(SPLITS):
        small, large = find_units(text, *tokens, fine)[1], find_units(text, *tokens, coarse)[1]
        assert len(set(zip(small, large, strict=True))) == len(set(small))


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("good", ["good"]),
        ("the cat, the cat!", ["the", "cat", ",", "the", "cat", "!"]),
        ("I don't think... so", ["I", "don't", "think", "...", "so"]),
        ("it is n't", ["it", "is", "n't"]),
        ("so 👩‍👩‍👧 👍🏽 🇩🇪 fun", ["so", "👩‍👩‍👧", "👍🏽", "🇩🇪", "fun"]),
        ("الكتاب جميل جدا", ["الكتاب", "جميل", "جدا"]),
        ("הים היה שקט", ["הים", "היה", "שקט"]),
        ("cafe\u0301 creme\u0300 x", ["cafe\u0301", "creme\u0300", "x"]),
        ("海很安静", ["海", "很", "安静"]),
        ("안녕하세요 여러분", ["안녕하세요", "여러분"]),
        ("ทำ", ["ทำ"]),
        ("  two\n\n\tlines  ", ["two", "lines"]),
    ],
)
def test_words_do_not_depend_on_the_tokenizer(name: str, text: str, expected: list[str]) -> None:
    assert unit_texts(name, text, "word") == expected


@pytest.mark.parametrize("name", TOKENIZERS)
def test_sentences_do_not_depend_on_the_tokenizer(name: str) -> None:
    text = "Dr. Smith told a story.  Nobody believed him!\n\nThe end"
    assert unit_texts(name, text, "sentence") == ["Dr. Smith told a story.", "Nobody believed him!", "The end"]


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_pair_numbers_its_units_through(name: str) -> None:
    text = ("The sea. The sky.", "the rain")
    units, unit_ids = find_units(text, *tokenize(name, text), "sentence")
    assert units == (Unit(0, 8, "The sea.", 0), Unit(9, 17, "The sky.", 0), Unit(0, 8, "the rain", 1))
    assert sorted(set(unit_ids) - {-1}) == [0, 1, 2]


@pytest.mark.parametrize("name", ["gpt2", "gpt2_untrimmed", "gpt2_prefix_space", "roberta", "llama"])
def test_tokens_of_one_emoji_are_one_unit(name: str) -> None:
    assert unit_texts(name, "a🐙b", "token") == ["a", "🐙", "b"]


@pytest.mark.parametrize("unit", SPLITS)
@pytest.mark.parametrize("name", ["gpt2_untrimmed", "llama"])
def test_nothing_but_white_space_is_one_unit_or_its_tokens(name: str, unit: Granularity) -> None:
    text = "\n \n"
    assert "".join(unit_texts(name, text, unit)) == text
    assert (len(unit_texts(name, text, unit)) == 1) == (unit != "token")


@pytest.mark.parametrize("unit", SPLITS)
def test_without_characters_to_go_by_all_tokens_are_one_unit(unit: Granularity) -> None:
    assert find_units("", [(0, 0), (0, 0)], [-1, -1], unit) == ((), (-1, -1))
    assert find_units("\u200b", [(0, 0)], [-1], unit) == ((), (-1,))
    assert find_units(" \x07 ", [(0, 0), (3, 3)], [0, 0], unit)[0] == (Unit(1, 2, "\x07"),)
    assert find_units("", [(0, 0)], [0], unit) == ((Unit(0, 0, ""),), (0,))


def spans_and_ids(text: str, offsets: list[tuple[int, int]], unit: Granularity) -> tuple[list[str], list[int]]:
    units, unit_ids = find_units(text, offsets, [0] * len(offsets), unit)
    return [found.text for found in units], list(unit_ids)


def test_leading_spaces_belong_to_no_token_unit() -> None:
    assert spans_and_ids("a bc  d", [(0, 1), (1, 4), (4, 7)], "token") == (["a", "bc", "d"], [0, 1, 2])


def test_white_space_tokens_are_units_of_their_own_only_between_tokens() -> None:
    text, offsets = "\na \nb\n", [(0, 1), (1, 2), (2, 4), (4, 5), (5, 6)]
    assert spans_and_ids(text, offsets, "token") == (["\n", "a", " \n", "b", "\n"], [0, 1, 2, 3, 4])
    assert spans_and_ids(text, offsets, "word") == (["a", "b"], [0, 0, 1, 1, 1])
    assert spans_and_ids(text, offsets, "sentence") == (["a \nb"], [0, 0, 0, 0, 0])


@pytest.mark.parametrize("unit", ["token", "word"])
def test_tokens_without_width_go_with_the_next_else_the_last(unit: Granularity) -> None:
    offsets = [(0, 0), (0, 1), (2, 2), (2, 3), (3, 3)]
    assert spans_and_ids("a b", offsets, unit) == (["a", "b"], [0, 0, 1, 1, 1])


def test_a_token_over_two_words_makes_them_one() -> None:
    text, offsets = "one two. Three", [(0, 2), (2, 5), (5, 7), (7, 10), (10, 14)]
    assert spans_and_ids(text, offsets, "token")[0] == ["on", "e t", "wo", ". T", "hree"]
    assert spans_and_ids(text, offsets, "word") == (["one two", ". Three"], [0, 0, 0, 1, 1])
    assert spans_and_ids(text, offsets, "sentence") == (["one two. Three"], [0, 0, 0, 0, 0])
    assert spans_and_ids("A b. C d.", [(0, 1), (2, 3), (3, 6), (7, 9)], "sentence") == (["A b. C d."], [0, 0, 0, 0])


def test_tokens_out_of_order_still_give_units_in_order() -> None:
    assert spans_and_ids("ab cd", [(3, 5), (0, 1), (1, 2)], "word") == (["ab", "cd"], [1, 0, 0])
    assert spans_and_ids("abcd", [(2, 4), (0, 3)], "token") == (["abcd"], [0, 0])


def test_offsets_past_the_end_stay_in_the_text() -> None:
    assert spans_and_ids("ab ", [(0, 2), (2, 9), (7, 6)], "token") == (["ab", " "], [0, 1, 1])
    assert find_units("ab ", [(0, 2), (2, 9)], [0, 0], "token")[0][1] == Unit(2, 3, " ")
    assert find_units(" ", [(0, 9)], [0], "word")[0] == (Unit(0, 1, " "),)
    assert find_units("", [(3, 1)], [0], "token")[0] == (Unit(0, 0, ""),)
    assert find_units("ab", [(1, 0)], [0], "token")[0] == (Unit(1, 1, ""),)


def test_characters_without_a_token_stay_in_their_word() -> None:
    text = "e\u0301a o\u0308x\u200dy te\u0301"
    assert unit_texts("bert_uncased", text, "word") == ["e\u0301a", "o\u0308x\u200dy", "te\u0301"]
    assert unit_texts("bert_uncased", text, "sentence") == [text]
    assert spans_and_ids("\u200babc de\u200b f", [(1, 4), (5, 7), (9, 10)], "sentence")[0] == ["\u200babc de\u200b f"]
    assert spans_and_ids("#abc\u200d", [(0, 1), (1, 4)], "word")[0] == ["#", "abc\u200d"]
    assert spans_and_ids("ab \u200b\ufffd", [(0, 2)], "sentence")[0] == ["ab \u200b\ufffd"]


def test_an_unknown_token_over_several_emoji_makes_them_one() -> None:
    assert unit_texts("bert", "so 👍🏽🇩🇪 fun", "word") == ["so", "👍🏽🇩🇪", "fun"]


def test_a_word_that_only_lost_characters_makes_no_unit() -> None:
    assert unit_texts("bert", "a \x07\u200b b", "word") == ["a", "b"]


def test_truncation_cuts_the_last_unit() -> None:
    text, offsets = "a wonderful day. Gone", [(0, 1), (2, 6), (6, 9)]
    assert spans_and_ids(text, offsets, "word")[0] == ["a", "wonderf"]
    assert spans_and_ids(text, offsets, "sentence")[0] == ["a wonderf"]
    assert spans_and_ids(text, [(0, 1), (2, 11)], "sentence")[0] == ["a wonderful"]
    # An accent goes with its letter, and white space before the cut is no part of a unit.
    assert spans_and_ids("ne\u0301 x", [(0, 2)], "sentence")[0] == ["ne\u0301"]


def test_truncation_on_the_left_cuts_the_first_unit() -> None:
    text, offsets = "Gone. A wonderful day", [(11, 17), (18, 21)]
    assert spans_and_ids(text, offsets, "word")[0] == ["derful", "day"]
    assert spans_and_ids(text, offsets, "sentence")[0] == ["derful day"]


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("unit", SPLITS)
def test_truncation_drops_what_the_model_does_not_see(name: str, unit: Granularity) -> None:
    text = "brilliant actors, boring music. Nobody believed him. " * 10
    offsets, owners = tokenize(name, text, 16)
    last = max(end for (_, end), owner in zip(offsets, owners, strict=True) if owner == 0)
    units, _ = find_units(text, offsets, owners, unit)
    assert units[-1].end == len(text[:last].rstrip())


@pytest.mark.thorough
def test_long_text_takes_linear_time() -> None:
    text = "word " * 40_000
    offsets = [(5 * number, 5 * number + 4) for number in range(40_000)]
    began = time.process_time()
    for unit in SPLITS:
        find_units(text, offsets, [0] * len(offsets), unit)
    assert time.process_time() - began < 20 * slowness()
