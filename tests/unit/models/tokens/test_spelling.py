"""Answers and outputs that a tokenizer does not keep as they are written."""

import unicodedata

import pytest
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import raison
from raison.core.errors import InputError
from raison.models.adapters.writing.generator import Generator
from raison.models.tokens.spelling import respelled

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


def test_statements_of_an_answer_that_is_spelled_differently_are_refused(composing: Generator) -> None:
    """Their characters would be those of another statement."""
    written = {"method": "occlusion", "draws": 0, "template": "plain"}
    for answer in (COMPOSED, unicodedata.normalize("NFD", COMPOSED)):
        start = answer.index(STATEMENT)
        spans = [(start, start + len(STATEMENT))]
        if answer == COMPOSED:
            cited = raison.cite(composing, "who?", SOURCES, answer=answer, statements=spans, **written)
            assert [one.text for one in cited.statements] == [STATEMENT]
            assert "respelled" not in cited.notes
            continue
        with pytest.raises(InputError, match="its tokens spell 'Ré née. Owls hunt at night. It is wet.'"):
            raison.cite(composing, "who?", SOURCES, answer=answer, statements=spans, **written)
        cited = raison.cite(composing, "who?", SOURCES, answer=answer, **written)
        assert STATEMENT in [one.text for one in cited.statements]
        assert "does not keep the given text" in str(cited.notes["respelled"])
        output = raison.explain(composing, "who?", "occlusion", output=answer)
        assert "does not keep the given text" in str(output.notes["respelled"])
