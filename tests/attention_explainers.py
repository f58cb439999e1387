"""Attention explainers that nobody trained, for any model: random coefficients, saved as trained ones are."""

from pathlib import Path

import torch
from transformers import AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

import raison
from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.passes import Passes
from raison.core.inputs.encoding import Encoding
from raison.core.model import LanguageModel
from raison.models.adapters.classifier import Classifier
from raison.models.derived import explainers
from raison.models.derived.attention_explainer import (
    Design,
    HeadMixture,
    HeadShape,
    InterpretableAttention,
    new_explainer,
    places_of,
    read_map,
)
from raison.models.derived.belonging import marks_of
from raison.models.derived.trained_attention import AttentionCard, write
from raison.models.loading.ready_made.zoo import fresh_span_model
from tests.tiny import TINY

Explainer = InterpretableAttention | HeadMixture
PAIRS = (
    ("What did the old sailor tell?", "The old sailor told a modest story about the sea, and nobody believed him."),
    ("Who was it?", "It was Dr. Smith."),
    ("How many apples?", "He paid for 1,000 apples on 12 May, in the rain."),
)
"""Questions and contexts that hold their answers."""


def randomized(explainer: Explainer, seed: int = 3) -> Explainer:
    """Coefficients of the size that they start with, every one another; some negative."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in explainer.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.copy_(parameter * (1 + 0.7 * noise))
    return explainer


def random_explainer(model: LanguageModel, encoding: Encoding, design: Design, seed: int = 3) -> Explainer:
    """An explainer of the model's shape with random coefficients, of which none is trained."""
    explainer = randomized(new_explainer(HeadShape.of(model, encoding), design), seed)
    return explainer.requires_grad_(False).eval()


def map_of(model: LanguageModel, encoding: Encoding, explainer: Explainer, design: Design) -> torch.Tensor:
    """One pass: the explanation of every text, (batch, tokens)."""
    with torch.no_grad(), model.ask(ReadableAttention).tap(record=explainer.steps) as tap:
        device = model.ask(Passes).logits(encoding).device
        return read_map(explainer, tap, places_of(encoding, design.over, device))


def untrained_attention(model: LanguageModel, folder: Path, design: Design, seed: int = 3) -> AttentionCard:
    """Write an explainer of `model` whose coefficients are drawn, and return what it says of itself."""
    encoding = model.encode(explainers.probes_of(model), "token")
    explainer = random_explainer(model, encoding, design, seed)
    card = AttentionCard(
        design=design,
        shape=HeadShape.of(model, encoding),
        **marks_of(model),
        criteria=("comprehensiveness",),
    )
    write(folder, card, explainer)
    return card


def saved_span_model(folder: Path, name: str = "bert") -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A tiny model that finds answers, with a head whose weights tell positions apart; it is saved in the folder."""
    model, tokenizer = TINY[name]()
    model.base_model.save_pretrained(folder / "base")
    tokenizer.save_pretrained(folder / "base")
    answering, _ = fresh_span_model(folder / "base")
    generator = torch.Generator().manual_seed(5)
    with torch.no_grad():
        head = dict(answering.named_children())["qa_outputs"]
        head.weight.copy_(torch.randn(head.weight.shape, generator=generator))
    answering.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return answering, AutoTokenizer.from_pretrained(folder)


def span_adapter(folder: Path, name: str = "bert") -> Classifier:
    """The same behind its adapter."""
    adapter = raison.load(*saved_span_model(folder, name))
    assert isinstance(adapter, Classifier)
    return adapter
