"""Classifiers whose parts are unlike others': every method explains them, or is refused in one line."""

from functools import cache

import numpy as np
import pytest
import torch
from torch import nn
from transformers import AutoModelForSequenceClassification, IBertConfig, NystromformerConfig, TapasConfig

import raison
from raison.core.errors import RaisonError, UnsupportedError
from raison.methods import CATALOGUE
from raison.models.adapters.classifier import Classifier
from tests.contracts.test_methods import SHORTER
from tests.tiny import SMALL, build

TEXT = "a dull plot told well"
CONFIGS = {
    "ibert": (IBertConfig, {"quant_mode": False}),
    "nystromformer": (NystromformerConfig, {"num_landmarks": 64, "segment_means_seq_len": 64}),
    "tapas": (TapasConfig, {"type_vocab_sizes": [3, 8, 8, 2, 8, 8, 4]}),
}


@cache
def built(kind: str) -> Classifier:
    _, tokenizer = build("bert")
    config, further = CONFIGS[kind]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        known = config(vocab_size=len(tokenizer), num_labels=2, **(SMALL | further))
        model = AutoModelForSequenceClassification.from_config(known)
        for parameter in model.parameters():
            nn.init.normal_(parameter, 0, 0.2)
    loaded = raison.load(model.eval(), tokenizer)
    assert isinstance(loaded, Classifier)
    return loaded


@pytest.mark.parametrize("method", CATALOGUE.names)
@pytest.mark.parametrize("kind", ["ibert", "nystromformer"])
def test_every_method_explains_it_or_says_why_not(kind: str, method: str) -> None:
    try:
        e = raison.explain(built(kind), TEXT, SHORTER.get(method, method), progress=False)
    except RaisonError as refusal:
        lines = len(str(refusal).splitlines())
    else:
        assert np.isfinite(e.scores).all()
        return
    assert lines == 1


@pytest.mark.parametrize("kind", ["ibert", "nystromformer"])
def test_occlusion_is_what_the_models_own_passes_give(kind: str) -> None:
    model = built(kind)
    e = raison.explain(model, TEXT, "occlusion", of="logit", removal="mask", progress=False)
    given = model.tokenizer(TEXT, return_tensors="pt")
    words = torch.tensor([-1 if word is None else word for word in given.word_ids()])
    logits = []
    for left in (-2, *range(len(e.units))):
        masked = given["input_ids"].masked_fill(words == left, model.tokenizer.mask_token_id)
        with torch.no_grad():
            logits.append(model.model(**(given | {"input_ids": masked})).logits)
    own = torch.cat(logits)[:, model.classes.index(e.target)]
    assert float((own[0] - own[1:]).abs().max()) > 1e-3
    np.testing.assert_allclose(e.scores, own[0] - own[1:], atol=1e-4)


def test_embeddings_with_a_scale_of_their_own_have_no_gradients() -> None:
    with pytest.raises(UnsupportedError, match="QuantEmbedding looks up numbers with their scale"):
        raison.explain(built("ibert"), TEXT, "integrated_gradients", progress=False)


def test_results_that_are_changed_in_place_carry_no_relevance() -> None:
    with pytest.raises(UnsupportedError, match="changes a result in place"):
        raison.explain(built("nystromformer"), TEXT, "deep_lift", progress=False)


@pytest.mark.parametrize("method", ["occlusion", "input_x_gradient", "attention_last"])
def test_a_model_that_needs_more_than_a_text_says_so(method: str) -> None:
    with pytest.raises(UnsupportedError, match="forward function of TapasForSequenceClassification fails: IndexError"):
        raison.explain(built("tapas"), TEXT, method, progress=False)
