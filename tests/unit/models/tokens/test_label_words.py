"""Label words as tokens: which tokens stand for them after a prompt."""

import pytest

from raison.core.errors import LoadError
from raison.models.tokens.label_words import Speller, find_label_ids
from raison.text.prompts import Prompt
from tests.prompted import PLAIN, encode, encoder, tokens_of
from tests.tokenizers import TOKENIZERS


def words(low: str, high: str, cue: str = "\nIt was", scoring: str = "word") -> Prompt:
    return Prompt(name="words", query=f"Story: {{text}}{cue}", labels={"low": low, "high": high}, scoring=scoring)


def test_label_tokens_are_those_that_follow_the_cue_and_not_those_of_the_word_alone() -> None:
    tokenizer = TOKENIZERS["llama"]()
    assert tokens_of("llama", tokenizer("a", add_special_tokens=False).input_ids) == ["▁a"]
    low, high = encoder("llama", words("a", "bad", "\nLabel:")).label_ids
    assert (tokens_of("llama", low), tokens_of("llama", high)) == (["a"], ["b", "ad"])
    low, high = encoder("llama", words(" a", " bad", "\nLabel:")).label_ids
    assert (tokens_of("llama", low), tokens_of("llama", high)) == (["▁a"], ["▁bad"])


@pytest.mark.parametrize("name", PLAIN)
def test_the_shots_and_the_answer_have_the_same_label_tokens(name: str) -> None:
    made = encoder(name)
    ids = encode(name, "x").input_ids[0].tolist()
    for label in made.label_ids:
        assert any(tuple(ids[at : at + len(label)]) == label for at in range(len(ids)))


def test_first_tokens_alone() -> None:
    whole, first = (encoder("gpt2", words(" slow", " weak", scoring=scoring)) for scoring in ("word", "first"))
    assert max(len(ids) for ids in whole.label_ids) > 1
    assert first.label_ids == tuple(ids[:1] for ids in whole.label_ids)


@pytest.mark.parametrize(
    ("name", "prompt", "message"),
    [
        (
            "gpt2",
            words("a", "the", "\nIt was "),
            r"word 'a' of 'low' merges with the end.*\[Ġ\] becomes \[Ġa\]. End the cue",
        ),
        ("llama", words("a", "b", "\nIt was "), r"word 'a' of 'low' merges with the end.*\[▁\] becomes \[▁a\]"),
        ("gpt2", words(" the", " theatre"), r"are \[Ġthe .*\] and its own beginning \[Ġthe\]: use other words"),
        ("gpt2", words(" the", " theatre", scoring="first"), "begin with the same token .Ġthe.: score them whole"),
        ("bert_uncased", words(" weak", " WEAK"), "are the same tokens"),
        ("bert", words(" N", " P"), "'high' is .\\[UNK\\]., which the tokenizer does not know"),
        ("bert", words("\u200b", " bad"), "'low' has no token after the prompt"),
    ],
)
def test_label_words_that_do_not_stand_apart(name: str, prompt: Prompt, message: str) -> None:
    with pytest.raises(LoadError, match=message):
        encoder(name, prompt)


def test_label_words_that_depend_on_the_text() -> None:
    def tokenize(string: str) -> tuple[int, ...]:
        return tuple(
            ord(letter) + (string[-2] == "!") * (number == len(string) - 1) for number, letter in enumerate(string)
        )

    prompt = words("s", "t", "")
    with pytest.raises(LoadError, match=r"'s' of 'low' is s after one text and t after another: end the query with a"):
        find_label_ids(prompt, prompt.render(None), Speller(tokenize, lambda ids: "".join(map(chr, ids)), None))
