"""Edits of texts: what they write, where, and which units are which afterwards."""

import pytest

from raison.core.errors import InputError, UnknownNameError
from raison.core.inputs.unit import Text, Unit
from raison.text.edits import EDITS, check_edits, edit
from raison.text.segment import sentence_spans, word_spans


def words(text: str, segment: int = 0) -> list[Unit]:
    return [Unit(start, end, text[start:end], segment) for start, end in word_spans(text)]


def pairs(name: str, text: str) -> list[tuple[str, str]]:
    """The groups of words that correspond, written out."""
    edited = edit(name, text)
    assert edited is not None
    before, after = words(text), words(edited.text)
    return [
        (" ".join(before[i].text for i in old), " ".join(after[i].text for i in new))
        for old, new in edited.groups(before, after)
    ]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("casing", "US", None),
        ("casing", "a ?", None),
        ("casing", "film", "Film"),
        ("casing", "Film", "film"),
        ("casing", "iPhone plot2 ßt", None),
        ("contraction", "They do not sing", "They don't sing"),
        ("contraction", "They don't sing", "They do not sing"),
        ("contraction", "We won’t", "We will not"),
        ("contraction", "I am late", "I'm late"),
        ("contraction", "It's late", "It is late"),
        ("contraction", "does n't sing , though", "does not sing , though"),
        ("contraction", "he cannot sing , though", "he ca n't sing , though"),
        ("contraction", "that is late , too", "that 's late , too"),
        ("contraction", "Yes, it is.", None),
        ("contraction", "It's been long", None),
        ("contraction", "rabbit isolated", None),
        ("synonym", "Movies", "Films"),
        ("synonym", "an entire day", None),
        ("synonym", "the entire day", "the whole day"),
        ("synonym", "the whole day", None),
        ("synonym", "a film-noir", None),
        ("synonym", "", None),
        ("neutral", "   ", None),
    ],
)
def test_what_an_edit_writes(name: str, text: str, expected: str | None) -> None:
    found = edit(name, text)
    assert (None if found is None else found.text) == expected


@pytest.mark.parametrize(
    ("text", "beginning", "end"),
    [
        ("We sang.", "We sang. ", "."),
        ("We sang", "We sang. ", "."),
        ('We "sang."', 'We "sang." ', "."),
        ("we sang , all day", "we sang , all day . ", " ."),
        ("we sang .  ", "we sang . ", " .  "),
    ],
)
def test_a_neutral_sentence_is_written_like_the_text(text: str, beginning: str, end: str) -> None:
    found = edit("neutral", text)
    assert found is not None
    assert isinstance(found.text, str)
    assert found.text.startswith(beginning)
    assert found.text.endswith(end)
    added = found.text[len(beginning) :]
    assert len(added.split()) >= 4
    assert added[0].isupper() == text[0].isupper()


def test_which_sentence_and_which_place_depend_on_the_text_alone() -> None:
    texts = [f"Singer number {number} sang and then the singer left." for number in range(60)]
    for name in ("casing", "neutral"):
        first = [edit(name, text) for text in texts]
        assert first == [edit(name, text) for text in texts]
    sentences = {edit("neutral", text).text[len(text) :] for text in texts}
    places = {edit("casing", text).old[0] for text in texts}
    assert len(sentences) >= 6
    assert len(places) >= 5


@pytest.mark.parametrize("name", EDITS)
def test_all_but_the_edited_characters_stay(name: str) -> None:
    text = "Perhaps it's a film that doesn't bore everyone."
    found = edit(name, text)
    assert found is not None
    assert isinstance(found.text, str)
    assert found.text != text
    assert found.text[: found.new[0]] == text[: found.old[0]]
    assert found.text[found.new[1] :] == text[found.old[1] :]


def test_words_that_correspond() -> None:
    assert pairs("synonym", "no film here") == [("no", "no"), ("film", "movie"), ("here", "here")]
    assert pairs("contraction", "they do not sing") == [("they", "they"), ("do not", "don't"), ("sing", "sing")]
    assert pairs("contraction", "they don't sing") == [("they", "they"), ("don't", "do not"), ("sing", "sing")]
    assert pairs("neutral", "they sing") == [("they", "they"), ("sing", "sing")]
    assert pairs("synonym", "a hilarious day") == [("a", "a"), ("hilarious", "very funny"), ("day", "day")]


def test_units_that_reach_over_the_edit() -> None:
    """Larger units correspond to those they overlap; a created sentence to none, a mark made within a unit to it."""
    text = "They sang. It's late."
    edited = edit("contraction", text)
    assert edited is not None
    assert isinstance(edited.text, str)
    before, after = (
        [Unit(start, end, string[start:end]) for start, end in sentence_spans(string)] for string in (text, edited.text)
    )
    assert edited.groups(before, after) == [((0,), (0,)), ((1,), (1,))]
    longer = edit("neutral", "they sang")
    assert longer is not None
    split = [Unit(0, 4, "they"), Unit(5, 10, "sang."), *(Unit(i, i + 3, "new") for i in range(11, 30, 4))]
    assert longer.groups(words("they sang"), split) == [((0,), (0,)), ((1,), (1,))]
    # Cut before the edit: what is not there any more corresponds to nothing.
    assert longer.groups(words("they sang"), split[:1]) == [((0,), (0,))]


def test_tokens_that_split_differently() -> None:
    """Two tokens became three, which meet at other letters of the edited word: one group."""
    edited = edit("casing", "film")
    assert edited is not None
    before = [Unit(0, 2, "fi"), Unit(2, 4, "lm")]
    after = [Unit(0, 1, "F"), Unit(1, 3, "il"), Unit(3, 4, "m")]
    assert edited.groups(before, after) == [((0, 1), (0, 1, 2))]


@pytest.mark.parametrize(
    ("text", "expected", "segment"),
    [
        (("A film plays.", "A film stops."), ("A movie plays.", "A film stops."), 0),
        (("A cat plays.", "A film stops."), ("A cat plays.", "A movie stops."), 1),
        (("film", "film"), ("movie", "film"), 0),
        (("A cat.", "A dog."), None, 0),
    ],
)
def test_of_a_pair_the_first_string_that_allows_it(text: Text, expected: Text | None, segment: int) -> None:
    found = edit("synonym", text)
    if expected is None:
        assert found is None
        return
    assert found is not None
    assert (found.text, found.segment) == (expected, segment)
    before, after = ([*words(strings[0]), *words(strings[1], 1)] for strings in (text, found.text))
    assert found.groups(before, after) == [((i,), (i,)) for i in range(len(before))]


def test_a_synonym_has_one_entry_and_goes_both_ways_where_it_may() -> None:
    assert edit("synonym", "movie").text == "film"
    assert edit("synonym", "film").text == "movie"
    assert edit("synonym", "boring").text == "dull"
    assert edit("synonym", "dull") is None


def test_names() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'synonym'"):
        edit("synonyms", "a film")
    with pytest.raises(InputError, match="each once"):
        check_edits(("casing", "casing"))
    with pytest.raises(InputError, match="at least one"):
        check_edits(())
