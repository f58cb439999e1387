"""Answers and outputs that a tokenizer does not keep as they are written."""

import unicodedata

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import raison
from raison.core.errors import InputError
from raison.models.adapters.writing.generator import Generator
from raison.models.tokens.spelling import respelled, spelled_spans

SOURCES = {"a": "Anna built it.", "b": "Owls hunt at night."}
COMPOSED = unicodedata.normalize("NFC", "Ré née. Owls hunt at night. It is wet.")
STATEMENT = "Owls hunt at night."


@pytest.fixture(scope="module")
def composing() -> Generator:
    """A model whose tokenizer composes accents, as those of many language models do."""
    own = Tokenizer(models.BPE())
    own.normalizer = normalizers.NFC()
    own.pre_tokenizer, own.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    own.train_from_iterator(
        [COMPOSED], trainers.BpeTrainer(vocab_size=300, special_tokens=["<e>"], initial_alphabet=alphabet)
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=own, eos_token="<e>")
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64
    )
    return raison.load(LlamaForCausalLM(config).eval(), tokenizer)


@pytest.mark.parametrize(("given", "spelled", "differs"), [(" a sea", "a sea", False), ("A sea", "a sea", True)])
def test_white_space_around_a_text_is_no_difference(given: str, spelled: str, differs: bool) -> None:
    assert bool(respelled(given, spelled)) is differs


def test_statements_of_an_answer_that_is_spelled_differently_are_found(composing: Generator) -> None:
    written = {"method": "occlusion", "draws": 0, "template": "plain"}
    found = []
    for answer in (COMPOSED, unicodedata.normalize("NFD", COMPOSED), f"  {COMPOSED} "):
        first, second = answer.index("R"), answer.index(STATEMENT)
        spans = [(first, answer.index(" Owls")), (second, second + len(STATEMENT))]
        cited = raison.cite(composing, "who?", SOURCES, answer=answer, statements=spans, **written)
        assert [one.text for one in cited.statements] == ["Ré née.", STATEMENT]
        assert ("respelled" in cited.notes) == ("é" not in answer)
        found.append(cited.scores)
    assert found[0] == found[1]
    output = raison.explain(composing, "who?", "occlusion", output=unicodedata.normalize("NFD", COMPOSED))
    assert "does not keep the given text" in str(output.notes["respelled"])


@pytest.mark.parametrize(
    ("given", "spelled", "part", "found"),
    [
        ("An Owl is up.", "an owl is up.", "Owl is", "owl is"),
        ("two  spaces,  here", "two spaces, here", "spaces,", "spaces,"),
        ("a quiet end", "a <unk>uiet end", "quiet", "<unk>uiet"),
        ("a quiet end", "a <unk>uiet end", "end", "end"),
        ("\u4e2d\u6587 built it.", "\u4e2d \u6587 built it .", "built it", "built it"),
        ("\u4e2d\u6587 built it.", "\u4e2d \u6587 built it .", "\u4e2d\u6587", "\u4e2d \u6587"),
        ("An Owl is up.", "an owl is up.", "An Owl is up.", "an owl is up."),
        ("e\u0301t\u00e9 is", "\u00e9t\u00e9 is", "is", "is"),
    ],
)
def test_a_part_is_found_in_what_tokens_spell(given: str, spelled: str, part: str, found: str) -> None:
    start = given.index(part)
    [(first, last)] = spelled_spans(given, spelled, [(start, start + len(part))])
    assert spelled[first:last] == found


def test_spans_outside_of_a_text_stay_outside() -> None:
    assert spelled_spans("A sea", "a sea", [(-1, 2), (3, 9)]) == [(-1, 2), (3, 9)]


def test_a_long_answer_takes_no_longer_than_its_words() -> None:
    """Character by character, it would take a minute; what has no words in common is refused."""
    given = "The Quick brown Fox jumps over the lazy Dog. " * 2000
    start = given.rindex("Dog")
    assert spelled_spans(given, given.lower(), [(start, start + 3)]) == [(start, start + 3)]
    with pytest.raises(InputError, match="whose tokens spell another text"):
        spelled_spans("A" * 5000, "a" * 5000, [(0, 5)])
