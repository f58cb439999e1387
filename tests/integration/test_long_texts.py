"""Texts of thousands of tokens: memory grows with their length where attention allows, and else it is said before."""

import contextlib
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers import (
    LlamaConfig,
    LlamaForCausalLM,
    LlamaForSequenceClassification,
    LongformerConfig,
    LongformerForSequenceClassification,
    ModernBertConfig,
    ModernBertForSequenceClassification,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

import raison
from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.core.errors import OutOfMemoryError
from raison.core.model import LanguageModel
from raison.judging.citing import estimate_cite
from raison.models.adapters.checks.forecast import forecast
from raison.models.adapters.checks.peak_memory import PeakMemory
from raison.models.adapters.writing.generator import Generator
from raison.models.gradients.rules import ruled_gradients
from raison.models.stack import attention_memory, query_blocks, recomputed
from tests.prompted import DAY
from tests.tiny import LANGUAGE_MODELS, TINY, build_answering, build_language_model
from tests.tokenizers import TOKENIZERS

SMALL = {
    "hidden_size": 32,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "initializer_range": 0.3,
}
LONGEST = 50_000
KINDS = {
    "short llama": (
        "llama",
        lambda own: LlamaForSequenceClassification(
            LlamaConfig(**own | {"num_hidden_layers": 1, "hidden_size": 16}, max_position_embeddings=LONGEST)
        ),
    ),
    "llama": (
        "llama",
        lambda own: LlamaForSequenceClassification(LlamaConfig(**own, max_position_embeddings=LONGEST)),
    ),
    "modernbert": (
        "roberta",
        lambda own: ModernBertForSequenceClassification(
            ModernBertConfig(**own, max_position_embeddings=8192, local_attention=64)
        ),
    ),
    "longformer": (
        "roberta",
        lambda own: LongformerForSequenceClassification(
            LongformerConfig(**own, max_position_embeddings=8194, attention_window=64)
        ),
    ),
}


class Largest(TorchDispatchMode):
    """The size of the largest tensor that a computation makes, in numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        sizes = [leaf.untyped_storage().nbytes() // 4 for leaf in tree_leaves(found) if isinstance(leaf, Tensor)]
        self.numbers = max(self.numbers, *sizes, 0)
        return found


def build(kind: str) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    name, make = KINDS[kind]
    tokenizer = TINY[name]()[1]
    tokenizer.model_max_length = LONGEST
    own = SMALL | {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id, "num_labels": 3}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = make(own)
    return model.eval(), tokenizer


def load(kind: str) -> LanguageModel:
    return raison.load(*build(kind))


def text_of(model: LanguageModel, tokens: int) -> str:
    """Sentences of at least this many tokens in total, and a few more."""
    sentence = "The old sailor told a modest story about the sea."
    each = model.encode([f"{sentence} {sentence}"]).lengths[0] - model.encode([sentence]).lengths[0]
    return " ".join([sentence] * (tokens // each + 1))


def largest(model: LanguageModel, text: str, method: str) -> int:
    with Largest() as seen:
        explanation = raison.explain(model, text, method, unit="sentence", progress=False)
    assert np.isfinite(explanation.scores).all()
    assert np.ptp(explanation.scores) > 0
    return seen.numbers


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("method", ["saliency", "integrated_gradients(steps=2)", "kernel_shap(samples=4)"])
def test_memory_grows_with_the_length_of_what_a_decoder_reads(method: str) -> None:
    model = load("llama")
    for tokens in (2250, 4500):
        # Up to some 2,048 tokens run as one sequence, under one mask.
        assert largest(model, text_of(model, tokens), method) < 1000 * max(tokens, 4500)


@pytest.mark.thorough
def test_ten_thousand_tokens() -> None:
    model = load("short llama")
    text = text_of(model, 10_000)
    tokens = model.encode([text]).lengths[0]
    assert 10_000 <= tokens < 10_100
    assert largest(model, text, "saliency") < 300 * tokens


@pytest.mark.parametrize("method", ["saliency", "kernel_shap(samples=4)"])
@pytest.mark.parametrize("kind", ["modernbert", "longformer"])
def test_encoders_of_long_texts(kind: str, method: str) -> None:
    """ModernBERT's mask has a whole number for each pair of tokens while it is made, but not for each head."""
    model = load(kind)
    text = text_of(model, 1600)
    assert largest(model, text, method) < 2.1 * model.encode([text]).lengths[0] ** 2


@pytest.mark.parametrize("name", ["bert", "deberta_v2"])
@pytest.mark.parametrize("method", ["attention_rollout", "deep_lift", "decompx"])
def test_attention_that_will_not_fit_is_refused_before(name: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = raison.load(*TINY[name]())
    text = "a dull plot, but the acting is a quiet pleasure"
    plain = raison.explain(model, text, method, progress=False).scores
    monkeypatch.setattr(attention_memory, "SMALL", 0)
    monkeypatch.setattr(attention_memory, "free_bytes", lambda _device: 1000)
    with pytest.raises(
        OutOfMemoryError, match=r"reading the attention to \d+ tokens takes about .* and 0.0 GiB are free"
    ):
        raison.explain(model, text, method, progress=False)
    raison.explain(model, text, "occlusion", progress=False)
    monkeypatch.setattr(attention_memory, "free_bytes", lambda _device: 1 << 40)
    assert raison.explain(model, text, method, progress=False).scores == plain


def test_a_batch_whose_attention_will_not_fit_goes_through_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    model = raison.load(*TINY["bert"]())
    texts = ["a dull plot", "a quiet film", "the end is good", "no"]
    plain = [e.scores for e in raison.explain(model, texts, "deep_lift", progress=False)]
    monkeypatch.setattr(attention_memory, "SMALL", 0)
    # Room for the longest text and its baseline, but not for all: 3 layers of 4 heads, 2 matrices of 4 bytes each.
    longest = max(model.encode(texts).lengths)
    monkeypatch.setattr(attention_memory, "free_bytes", lambda _device: 2 * 3 * 4 * 2 * 4 * longest**2 + 1)
    found = [e.scores for e in raison.explain(model, texts, "deep_lift", progress=False)]
    for one, other in zip(found, plain, strict=True):
        assert one == pytest.approx(other, abs=1e-5)


def test_free_memory_is_known_here() -> None:
    free = attention_memory.free_bytes(torch.device("cpu"))
    assert free is None or free > 1 << 20
    assert attention_memory.free_bytes(torch.device("meta")) is None


def test_a_tokenizer_of_the_tests_stays_as_it_is() -> None:
    build("llama")
    assert TOKENIZERS["llama"]().model_max_length == 512


@pytest.mark.parametrize("name", ["bert", "llama"])
def test_what_a_long_text_will_keep_is_known_before(name: str) -> None:
    """Measured on texts of 64 and 256 tokens at most, and told for 1,000."""
    model = load(name) if name in KINDS else raison.load(*TINY[name]())
    found = forecast(model, 100 if name == "bert" else 1000)
    text = model.encode([text_of(model, found.tokens - 40)])
    share = text.lengths[0] / found.tokens

    def kept(tapped: bool) -> int:
        sizes: dict[int, int] = {}
        weights = {parameter.data_ptr() for parameter in model.core.parameters()}

        def keep(tensor: Tensor) -> Tensor:
            storage = tensor.untyped_storage()
            sizes[storage.data_ptr()] = 0 if storage.data_ptr() in weights else storage.nbytes()
            return tensor

        embeds = model.ask(WordEmbeddings).embed(text).requires_grad_()
        with (
            torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
            model.ask(ReadableAttention).tap() if tapped else contextlib.nullcontext(),
        ):
            model.ask(Passes).logits(text, embeds).sum()
        return sum(sizes.values())

    assert found.gradient is not None
    assert kept(False) == pytest.approx(found.gradient.kept * share, rel=0.25)
    assert found.attention is not None
    assert kept(True) == pytest.approx(found.attention.kept * share**2, rel=0.35)
    assert found.attention.kept > found.gradient.kept


def writer_of_many_heads() -> Generator:
    tokenizer = TINY["llama"]()[1]
    tokenizer.model_max_length = LONGEST
    own = SMALL | {"hidden_size": 64, "num_attention_heads": 8, "intermediate_size": 256}
    config = LlamaConfig(**own, vocab_size=len(tokenizer), max_position_embeddings=LONGEST)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        found = raison.load(LlamaForCausalLM(config).eval(), tokenizer)
    assert isinstance(found, Generator)
    return found


@pytest.mark.thorough
def test_memory_of_rules_does_not_grow_with_the_square_of_a_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept whole, four times the tokens take nearly sixteen times the memory."""
    monkeypatch.setattr(query_blocks, "NUMBERS", 1 << 17)
    writer, sentence = writer_of_many_heads(), "The old sailor told a modest story about the sea. "
    each = len(writer.prompt(sentence * 2).ids) - len(writer.prompt(sentence).ids)
    peaks = []
    for tokens in (150, 600):
        with PeakMemory() as memory:
            prompt = sentence * (tokens // each)
            e = raison.explain(writer, prompt, "deep_lift", output="a", unit="sentence", progress=False)
        assert np.ptp(e.scores) > 0
        peaks.append(memory.peak)
    assert peaks[1] < 5 * peaks[0]


@pytest.mark.parametrize("tokens", [60, 300])
def test_memory_of_rules_is_said_before(tokens: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fewer than 256 tokens are kept whole."""
    monkeypatch.setattr(query_blocks, "NUMBERS", 1 << 18)
    writer, sentence = writer_of_many_heads(), "The old sailor told a modest story about the sea. "
    each = len(writer.prompt(sentence * 2).ids) - len(writer.prompt(sentence).ids)
    given = {"answer": "a", "template": "plain", "method": "deep_lift", "within": "source", "draws": 0}
    sources = {"one": sentence * (tokens // each), "two": sentence}
    said = estimate_cite(writer, "what is it?", sources, **given)
    with PeakMemory(writer.core.parameters()) as memory:
        raison.cite(writer, "what is it?", sources, **given)
    assert memory.peak <= said.batch_bytes <= 4 * memory.peak


@pytest.mark.parametrize(
    ("name", "method"), [*((name, "deep_lift") for name in LANGUAGE_MODELS), ("llama", "attn_lrp")]
)
def test_layers_computed_again_in_blocks_give_the_same(name: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = build_language_model(name)
    writer = raison.load(model.double(), tokenizer)

    def scores() -> np.ndarray:
        prompt = "a dull plot, but the acting is a quiet pleasure"
        return np.array(raison.explain(writer, prompt, method, output=" the end", unit="token", progress=False).scores)

    whole, passes = scores(), []
    again = recomputed.Recomputed.gradients
    monkeypatch.setattr(recomputed.Recomputed, "gradients", lambda *own: (passes.append(own), again(*own))[1])
    monkeypatch.setattr(ruled_gradients, "LONG", 1)
    monkeypatch.setattr(query_blocks, "NUMBERS", 200)
    np.testing.assert_allclose(scores(), whole, rtol=1e-6, atol=1e-8)
    assert passes


@pytest.mark.parametrize("kind", ["answers", "prompted", "t5"])
def test_every_kind_of_model_has_a_forecast(kind: str) -> None:
    makers = {
        "answers": lambda: raison.load(*build_answering("bert")),
        "prompted": lambda: raison.load(*build_language_model("gpt2"), prompt=DAY),
        "t5": lambda: raison.load(*TINY["t5"]()),
    }
    found = forecast(makers[kind](), 100)
    assert found.tokens == 100
    assert found.evaluation.seconds > 0
    assert found.gradient is not None
    assert found.gradient.kept > 0
    assert (found.attention is None) == (kind == "t5")


def test_without_attention_nothing_is_told_of_it() -> None:
    assert forecast(load("longformer"), 1000).attention is None
