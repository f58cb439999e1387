"""The library's own copy of a tokenizer: made once, made again when the caller changes theirs, deleted with it."""

import copy
import gc
import threading
import weakref
from collections.abc import Callable

import pytest
from tokenizers import normalizers, processors
from transformers import PreTrainedTokenizerFast

import raison
from raison.models.adapters.writing.generator import Generator
from raison.models.passes.removal import replacement_ids
from raison.models.stack.hooks import hooked
from raison.models.tokens import own_tokenizer as module
from raison.models.tokens.own_tokenizer import own_tokenizer
from tests.prompted import DAY
from tests.tiny import ANSWERING, LANGUAGE_MODELS, QUESTIONS, TINY, build_answering, build_language_model
from tests.tokenizers import TOKENIZERS

TEXT = "the old sailor told a modest story"


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[PreTrainedTokenizerFast]:
    """Every copy that is made from here on."""
    made: list[PreTrainedTokenizerFast] = []
    plain = module.plain_copy

    def noted(tokenizer: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
        made.append(tokenizer)
        return plain(tokenizer)

    monkeypatch.setattr(module, "plain_copy", noted)
    return made


def fresh(name: str = "llama") -> PreTrainedTokenizerFast:
    return copy.deepcopy(TOKENIZERS[name]())


@pytest.mark.parametrize("name", sorted(TINY))
def test_a_classifier_is_loaded_and_asked_with_one_copy(name: str, copies: list[PreTrainedTokenizerFast]) -> None:
    loaded = raison.load(*TINY[name]())
    for _ in range(3):
        raison.explain(loaded, [TEXT, "dull"], "occlusion")
    assert len(copies) == 1


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_a_language_model_writes_with_one_copy(name: str, copies: list[PreTrainedTokenizerFast]) -> None:
    loaded = raison.load(*build_language_model(name))
    for method in ("occlusion", "random", "attn_lrp"):
        raison.explain(loaded, TEXT, method, output=" about the sea", of="logit")
    assert len(copies) == 1


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_a_language_model_classifies_with_one_copy(name: str, copies: list[PreTrainedTokenizerFast]) -> None:
    loaded = raison.load(*build_language_model(name), prompt=DAY)
    raison.explain(loaded, [TEXT, "dull"], "occlusion")
    assert len(copies) == 1


@pytest.mark.parametrize("name", ANSWERING)
def test_questions_are_answered_with_two_copies(name: str, copies: list[PreTrainedTokenizerFast]) -> None:
    """One that takes the names of special tokens in a text for words, and one that counts the question's tokens."""
    loaded = raison.load(*build_answering(name))
    for _ in range(3):
        raison.explain(loaded, QUESTIONS, "occlusion")
    assert len(copies) == 2


def test_texts_that_are_cut_get_one_copy_more_and_others_stay_whole(copies: list[PreTrainedTokenizerFast]) -> None:
    """Truncation is a setting of the tokenizer itself: threads that share one must not meet that of others."""
    loaded = raison.load(*TINY["bert"]())
    long = "dull plot " * 200
    cut, whole, again = (raison.explain(loaded, text, "random", truncate=True) for text in (long, TEXT, long))
    assert cut.truncated == again.truncated > 0
    assert whole.truncated == 0
    assert len(copies) == 2
    assert own_tokenizer(loaded.tokenizer, "texts").backend_tokenizer.truncation is None


CHANGES: dict[str, Callable[[PreTrainedTokenizerFast], object]] = {
    "added token": lambda own: own.add_tokens(["sailor"]),
    "added special token": lambda own: own.add_special_tokens({"additional_special_tokens": ["<turn>"]}),
    "pad token": lambda own: setattr(own, "pad_token", "<s>"),
    "longest input": lambda own: setattr(own, "model_max_length", 7),
    "side of truncation": lambda own: setattr(own, "truncation_side", "left"),
    "chat template": lambda own: setattr(own, "chat_template", "{{ messages }}"),
    "normalizer": lambda own: setattr(own.backend_tokenizer, "normalizer", normalizers.Lowercase()),
    "what is put around": lambda own: setattr(
        own.backend_tokenizer,
        "post_processor",
        processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 2)]),
    ),
    "dropout": lambda own: setattr(own.backend_tokenizer.model, "dropout", 0.5),
    "another backend": lambda own: setattr(own, "_tokenizer", fresh("unigram").backend_tokenizer),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_the_callers_tokenizer_is_followed(change: str) -> None:
    tokenizer = fresh()
    before = own_tokenizer(tokenizer)
    assert own_tokenizer(tokenizer) is before
    CHANGES[change](tokenizer)
    after = own_tokenizer(tokenizer)
    assert after is not before
    assert own_tokenizer(tokenizer) is after
    if change != "dropout":
        assert after(TEXT.title()).input_ids == tokenizer(TEXT.title()).input_ids


def test_the_callers_truncation_and_padding_stay_and_reach_no_copy() -> None:
    tokenizer = fresh("bert")
    plain = own_tokenizer(tokenizer)
    tokenizer.backend_tokenizer.enable_truncation(4)
    tokenizer.backend_tokenizer.enable_padding(length=9)
    own = own_tokenizer(tokenizer)
    assert own is plain
    assert len(own(TEXT).input_ids) > 4
    assert tokenizer.backend_tokenizer.truncation["max_length"] == 4
    assert tokenizer.backend_tokenizer.padding["length"] == 9


def test_a_copy_goes_with_the_tokenizer() -> None:
    tokenizer = fresh()
    own = weakref.ref(own_tokenizer(tokenizer))
    assert own() is not None
    del tokenizer
    gc.collect()
    assert own() is None


def test_threads_make_one_copy(copies: list[PreTrainedTokenizerFast]) -> None:
    tokenizer, found = fresh(), []
    threads = [threading.Thread(target=lambda: found.append(own_tokenizer(tokenizer))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(copies) == 1
    assert len({id(own) for own in found}) == 1


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_what_was_tried_for_one_output_is_not_tried_for_the_next(name: str) -> None:
    """`random` does not use the model: what is left are the prediction and the value of the empty prompt."""
    loaded = raison.load(*build_language_model(name))
    assert isinstance(loaded, Generator)
    passes: list[int] = []

    def count(*_: object) -> None:
        passes.append(1)

    # No hook of the caller's: with one, no prompt's states would be stored.
    with hooked([loaded.core.base_model], after=count):
        raison.explain(loaded, TEXT, "random", output=" about the sea")
        passes.clear()
        raison.explain(loaded, TEXT, "random", output=" about the sea")
    assert len(passes) == 2


@pytest.mark.parametrize("name", sorted(TOKENIZERS))
def test_the_token_for_three_dots_does_not_depend_on_the_callers_settings(name: str) -> None:
    plain, cut = fresh(name), fresh(name)
    cut.backend_tokenizer.enable_truncation(1)
    cut.backend_tokenizer.enable_padding(length=9)
    for tokenizer in (plain, cut):
        assert replacement_ids(tokenizer) == replacement_ids(fresh(name))
        tokenizer.add_tokens(["..."])
    assert replacement_ids(plain)["ellipsis"] == replacement_ids(cut)["ellipsis"] == len(plain) - 1
