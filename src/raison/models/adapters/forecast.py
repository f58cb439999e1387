"""The time and memory of one text of a given length, extrapolated from two short ones."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.core.inputs.encoding import Encoding
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.uses import QUESTION

SHORT, LONG = 64, 256
"""Lengths of the two texts in tokens, if the model reads that many."""


@dataclass(frozen=True, slots=True)
class Effort:
    """Seconds, and the bytes kept for the backward pass; 0 without one."""

    seconds: float
    kept: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """One pass over a text: without gradients, with them, and with all attention; None where not available."""

    tokens: int
    evaluation: Effort
    gradient: Effort | None
    attention: Effort | None


def forecast(model: Classifier, tokens: int) -> Forecast:
    """The cost of a text of `tokens` tokens: c n + d n^2, with c and d fitted to two measured texts.

    Times are for a single text on this machine under its current load; texts in a batch take less each.
    """
    longest = tokens if model.max_tokens is None else min(tokens, model.max_tokens)
    texts = [_text(model, min(LONG, longest) // share) for share in (LONG // SHORT, 1)]

    def expect(work: Callable[[Encoding], None]) -> Effort:
        work(texts[0])
        (few, less), (many, more) = ((text.lengths[0], _effort(model, work, text)) for text in texts)
        seconds, kept = (
            _extended((few, float(one)), (many, float(other)), tokens)
            for one, other in ((less.seconds, more.seconds), (less.kept, more.kept))
        )
        return Effort(seconds, int(kept))

    run = model.ask(Passes).logits

    def evaluate(text: Encoding) -> None:
        with torch.no_grad():
            run(text)

    def differentiate(text: Encoding) -> None:
        embeds = model.ask(WordEmbeddings).embed(text).requires_grad_()
        run(text, embeds).sum().backward(inputs=[embeds])

    def attend(text: Encoding) -> None:
        with model.ask(ReadableAttention).tap():
            differentiate(text)

    gradients = model.offers(WordEmbeddings)
    return Forecast(
        tokens,
        expect(evaluate),
        expect(differentiate) if gradients else None,
        expect(attend) if gradients and model.offers(ReadableAttention) else None,
    )


def _text(model: Classifier, tokens: int) -> Encoding:
    """A text of about so many tokens, not more where one word has fewer; behind a question where the model answers."""

    def encode(words: int) -> Encoding:
        text = " ".join(["film"] * words)
        return model.encode([(QUESTION, text) if model.pairs else model.use.probe(text)], truncate=True)

    words = 1
    while words < tokens and encode(2 * words).lengths[0] <= tokens:
        words *= 2
    return encode(words)


def _effort(model: Classifier, work: Callable[[Encoding], None], text: Encoding) -> Effort:
    weights = {parameter.data_ptr() for parameter in model.core.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    started = time.perf_counter()
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        work(text)
    return Effort(time.perf_counter() - started, sum(kept.values()))


def _extended(first: tuple[int, float], second: tuple[int, float], tokens: int) -> float:
    """c n + d n^2 through two points, both parts at least 0."""
    (few, less), (many, more) = first, second
    if few == many:
        return more * tokens / many
    square = max(0.0, (more / many - less / few) / (many - few))
    linear = max(0.0, more / many - square * many)
    return linear * tokens + square * tokens**2
