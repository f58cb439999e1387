"""Tokenizers of other models."""

import copy

import pytest
from transformers import AddedToken, CanineConfig, CanineForSequenceClassification

import raison
from raison.core.errors import LoadError, UnsupportedError
from raison.models.loading.vocabulary import check_vocabulary
from tests.tiny import build


def test_a_tokenizer_with_more_tokens_than_embeddings_is_refused() -> None:
    model, tokenizer = build("bert")
    check_vocabulary(model, tokenizer, "tiny")
    model.resize_token_embeddings(len(tokenizer) - 1)
    with pytest.raises(LoadError, match="give the model's own tokenizer, or call model.resize_token_embeddings"):
        check_vocabulary(model, tokenizer, "tiny")


def test_a_special_token_that_no_text_has_needs_no_embedding() -> None:
    model, tokenizer = build("bert")
    more = copy.deepcopy(tokenizer)
    more.add_tokens([AddedToken("<extra>", special=True)])
    check_vocabulary(model, more, "tiny")
    more.add_tokens(["vandalic"])
    with pytest.raises(LoadError, match="tokens up to number"):
        check_vocabulary(model, more, "tiny")


def test_a_model_that_computes_its_embeddings_is_refused_with_the_way_out() -> None:
    config = CanineConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    _, tokenizer = build("bert")
    refused = r"CanineForSequenceClassification: .*names no table of word embeddings.* Explain it as a function"
    with pytest.raises(UnsupportedError, match=refused):
        raison.load(CanineForSequenceClassification(config), tokenizer)
