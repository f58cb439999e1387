"""Texts whose tokens are their words."""

import pytest
import torch

from raison.core.errors import InputError
from raison.core.inputs.parts import parted
from raison.core.inputs.unit import Text
from raison.models.tokens.word_encoder import WordEncoder

TEXT = "It is good.  Or\n\nnot!"


def test_words_are_tokens_and_units() -> None:
    encoding = WordEncoder(1).encode([TEXT, "So?"], "word")
    assert [unit.text for unit in encoding.units[0]] == ["It", "is", "good", ".", "Or", "not", "!"]
    assert encoding.lengths == (7, 2)
    assert encoding.unit_ids.tolist() == [[0, 1, 2, 3, 4, 5, 6], [0, 1, -1, -1, -1, -1, -1]]
    for row, text in enumerate(encoding.texts):
        for place, (start, end) in enumerate(encoding.offsets[row, : encoding.lengths[row]].tolist()):
            assert text[start:end] == encoding.units[row][place].text


def test_a_token_is_a_word() -> None:
    by_token, by_word = (WordEncoder(1).encode([TEXT], unit) for unit in ("token", "word"))
    assert by_token.units == by_word.units
    assert torch.equal(by_token.unit_ids, by_word.unit_ids)


def test_sentences_are_units_of_several_tokens() -> None:
    encoding = WordEncoder(1).encode([TEXT], "sentence")
    assert [unit.text for unit in encoding.units[0]] == ["It is good.", "Or", "not!"]
    assert encoding.unit_ids.tolist() == [[0, 0, 0, 0, 1, 2, 2]]


def test_a_word_is_cut_where_a_part_begins_or_ends() -> None:
    given = parted("so  unhappy, again", {"negation": (4, 6), "rest": (6, 14)})
    encoding = WordEncoder(1).encode([given], "part")
    assert [(unit.name, unit.text) for unit in encoding.units[0]] == [("negation", "un"), ("rest", "happy, a")]
    tokens = [given.text[start:end] for start, end in encoding.offsets[0].tolist()]
    assert tokens == ["so", "un", "happy", ",", "a", "gain"]
    assert encoding.unit_ids[0].tolist() == [-1, 0, 1, 1, 1, -1]
    assert encoding.given == (given,)


def test_parts_of_pairs_are_those_of_their_own_text() -> None:
    encoding = WordEncoder(2).encode([parted(("unfair", "unfair"), [(2, 6), (0, 2, 1)])], "part")
    assert [(unit.text, unit.segment) for unit in encoding.units[0]] == [("fair", 0), ("un", 1)]
    assert encoding.unit_ids.tolist() == [[-1, 0, 1, -1]]


def test_words_are_not_cut_at_parts() -> None:
    given, encoder = parted("so unhappy", [(3, 5)]), WordEncoder(1)
    by_word, plain = encoder.encode([given], "word"), encoder.encode(["so unhappy"], "word")
    assert by_word.units == plain.units
    assert torch.equal(by_word.input_ids, plain.input_ids)


def test_a_text_without_parts_has_none() -> None:
    with pytest.raises(InputError, match="has no parts of its own"):
        WordEncoder(1).encode(["so good"], "part")


def test_pairs() -> None:
    encoding = WordEncoder(2).encode([("A man", "He sleeps.")], "word")
    assert [(unit.text, unit.segment) for unit in encoding.units[0]] == [
        ("A", 0),
        ("man", 0),
        ("He", 1),
        ("sleeps", 1),
        (".", 1),
    ]
    assert encoding.type_ids.tolist() == [[0, 0, 1, 1, 1]]


@pytest.mark.parametrize("other", ["so  good", "so good ", "so bad", "so Good", "sogood"])
def test_ids_differ_where_texts_do(other: str) -> None:
    encoder = WordEncoder(1)
    first, second = encoder.encode(["so good"], "word"), encoder.encode([other, "so good"], "word")
    assert first.input_ids[0].tolist() == second.input_ids[1, :2].tolist()
    assert first.input_ids[0].tolist() != second.input_ids[0, : second.lengths[0]].tolist()


def test_halves_of_characters_are_words_too() -> None:
    assert WordEncoder(1).encode(["a \ud83d b"], "word").unit_counts == (3,)


@pytest.mark.parametrize(
    ("pairs", "text", "told"),
    [
        (False, ("a", "b"), "this model takes a string"),
        (True, "a", "this model takes a pair of two strings"),
        (False, " \n", "is empty or blank"),
        (True, ("a", ""), "is empty or blank"),
    ],
)
def test_what_is_no_text_is_refused(pairs: bool, text: Text, told: str) -> None:
    with pytest.raises(InputError, match=told):
        WordEncoder(1 + pairs).encode([text], "word")


def test_no_text_is_refused() -> None:
    with pytest.raises(InputError, match="pass at least one"):
        WordEncoder(1).encode([], "word")
