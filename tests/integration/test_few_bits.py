"""Models in hand whose weights bitsandbytes packed in 8 bits, or torchao in 8 or 4, where these are installed."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn
from transformers import BertConfig, BertForSequenceClassification, LlamaConfig, LlamaForCausalLM, PreTrainedModel

import raison
from raison.models.adapters.checks.selfcheck import selfcheck
from tests.tiny import LABELS, TINY

TEXT = "the actors are brilliant but the plot is thin"
KEPT = ("classifier", "lm_head")
"""Layers that these libraries leave alone by default."""


def bitsandbytes(model: PreTrainedModel) -> PreTrainedModel:
    library = pytest.importorskip("bitsandbytes").nn
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear and name not in KEPT:
                shape, bias = (child.in_features, child.out_features), child.bias is not None
                found = library.Linear8bitLt(*shape, bias, has_fp16_weights=False)
                found.weight = library.Int8Params(child.weight.data, requires_grad=False, has_fp16_weights=False)
                found.bias = child.bias
                setattr(module, name, found.to("cpu"))
    return model


def torchao(bits: int) -> Callable[[PreTrainedModel], PreTrainedModel]:
    def pack(model: PreTrainedModel) -> PreTrainedModel:
        library = pytest.importorskip("torchao.quantization")
        weights = library.Int8WeightOnlyConfig()
        if bits == 4:
            weights = library.IntxWeightOnlyConfig(weight_dtype=torch.int4, granularity=library.PerGroup(32))
        library.quantize_(model, weights, lambda layer, name: type(layer) is nn.Linear and name not in KEPT)
        return model

    return pack


KINDS = {
    "bitsandbytes 8": (bitsandbytes, 0.3),
    "torchao 8": (torchao(8), 0.2),
    "torchao 4": (torchao(4), 0.9),
}
"""How weights are packed, and the share of the scores' norm that rounding may change in models this small."""
pytestmark = pytest.mark.filterwarnings("ignore")


def classifier() -> tuple[PreTrainedModel, object]:
    _, tokenizer = TINY["bert"]()
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    config = BertConfig(vocab_size=len(tokenizer), **sizes, initializer_range=0.2, id2label=dict(enumerate(LABELS)))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return BertForSequenceClassification(config).eval(), tokenizer


@pytest.mark.parametrize("kind", KINDS)
def test_classifiers(kind: str) -> None:
    pack, near = KINDS[kind]
    model, tokenizer = classifier()
    plain, found = raison.load(*classifier()), raison.load(pack(model), tokenizer)
    findings = selfcheck(found, TEXT)
    wrong = [finding for finding in findings if not finding.passed]
    # Inputs are rounded with those of other texts, or layers are not the product with one matrix.
    assert all(kind == "bitsandbytes 8" for _ in wrong), wrong
    for method in ("occlusion", "saliency", "integrated_gradients", "attention_rollout"):
        one, other = (
            np.array(raison.explain(each, TEXT, method, of="logit", progress=False).scores) for each in (found, plain)
        )
        assert np.linalg.norm(one - other) < near * np.linalg.norm(other), method


@pytest.mark.parametrize("kind", KINDS)
def test_language_models_that_write(kind: str) -> None:
    _, tokenizer = TINY["llama"]()
    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 128}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **sizes, initializer_range=0.2)).eval()
    loaded = raison.load(KINDS[kind][0](model), tokenizer)
    for method in ("occlusion", "integrated_gradients"):
        found = np.array(
            raison.explain(loaded, "the old sailor", method, output=" story", progress=False).scores, float
        )
        assert np.isfinite(found).all()
        assert np.abs(found).max() > 0
