"""The time and memory of one text of a given length, extrapolated from two short ones."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.passes import Passes
from raison.core.errors import TextTooLongError, UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.task_setup import QUESTION
from raison.models.adapters.writing.generator import Generator
from raison.models.tokens.continuation import ContinuationEncoder

SHORT, LONG = 64, 256
"""Lengths of the two texts in tokens, if the model accepts that many."""


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


@dataclass(frozen=True, slots=True)
class Sample:
    """A text and its reader; for a language model that writes, each prompt has its own reader."""

    model: Classifier
    text: Encoding

    @property
    def tokens(self) -> int:
        """The text's length."""
        return self.text.lengths[0]


def forecast(model: Classifier, tokens: int) -> Forecast:
    """The cost of a text of `tokens` tokens, see `expected`."""
    return expected(partial(_of_texts, model), model.max_tokens, tokens)


def expected(sampled: Callable[[int], Sample], longest: int | None, tokens: int) -> Forecast:
    """The cost of a text of `tokens` tokens: c n + d n^2, with c and d fitted to two measured texts.

    `sampled` gives a text of about the requested number of tokens; the model reads at most `longest`. Times are for a
    single text on this machine under its current load; texts in a batch take less each.
    """
    most = min(LONG, tokens if longest is None else min(tokens, longest))
    samples = [sampled(most // share) for share in (LONG // SHORT, 1)]

    def expect(work: Callable[[Sample], None]) -> Effort:
        work(samples[0])
        (few, less), (many, more) = ((sample.tokens, _effort(work, sample)) for sample in samples)
        seconds, kept = (
            CostCurve.through(Measured(few, float(one)), Measured(many, float(other))).at(tokens)
            for one, other in ((less.seconds, more.seconds), (less.kept, more.kept))
        )
        return Effort(seconds, int(kept))

    model = samples[0].model
    gradients = model.offers(WordEmbeddings)
    return Forecast(
        tokens,
        expect(_evaluate),
        expect(_differentiate) if gradients else None,
        expect(_attend) if gradients and _reads_attention(samples[0]) else None,
    )


def _reads_attention(sample: Sample) -> bool:
    """Whether the attention of a text can be read; some modules show only then that they compute another one."""
    if not sample.model.offers(ReadableAttention):
        return False
    try:
        _attend(sample)
    except UnsupportedError:
        return False
    return True


def _of_texts(model: Classifier, tokens: int) -> Sample:
    """A text of about `tokens` tokens, after a question if the model answers questions."""

    def encode(words: int) -> Sample:
        text = repeated(words)
        read = (QUESTION, text) if model.pairs else model.use.probe(text)
        return Sample(model, model.encode([read], truncate=True))

    return sized(encode, tokens)


def reading(model: Generator, text: str) -> Sample:
    """A prompt, read for the first token of an output."""
    prompt = model.prompt(text)
    rows = ContinuationEncoder(prompt, model.output(prompt, " film")[0], earlier=False)
    reader = model.reader(rows, rows.output.ids)
    return Sample(reader, reader.encode(rows.texts, "word").select([0]))


def prompted(model: Generator, tokens: int) -> Sample:
    """The same for a prompt of about `tokens` tokens."""
    return sized(lambda words: reading(model, repeated(words)), tokens)


def repeated(words: int) -> str:
    """A text of `words` words."""
    return " ".join(["film"] * words)


def sized(encode: Callable[[int], Sample], tokens: int) -> Sample:
    """A sample of words with about `tokens` tokens, and not more unless it is a single word."""

    def fits(words: int) -> bool:
        try:
            return encode(words).tokens <= tokens
        except TextTooLongError:
            return False

    words = 1
    while words < tokens and fits(2 * words):
        words *= 2
    return encode(words)


def _evaluate(sample: Sample) -> None:
    with torch.no_grad():
        sample.model.ask(Passes).logits(sample.text)


def _differentiate(sample: Sample) -> None:
    embeds = sample.model.ask(WordEmbeddings).embed(sample.text).requires_grad_()
    sample.model.ask(Passes).logits(sample.text, embeds).sum().backward(inputs=[embeds])


def _attend(sample: Sample) -> None:
    with sample.model.ask(ReadableAttention).tap():
        _differentiate(sample)


def _effort(work: Callable[[Sample], None], sample: Sample) -> Effort:
    weights = {parameter.data_ptr() for parameter in sample.model.core.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    started = time.perf_counter()
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        work(sample)
    return Effort(time.perf_counter() - started, sum(kept.values()))


@dataclass(frozen=True, slots=True)
class Measured:
    """The time or memory of a text of `tokens` tokens."""

    tokens: int
    took: float

    @property
    def each(self) -> float:
        """The share of one token."""
        return self.took / self.tokens


@dataclass(frozen=True, slots=True)
class CostCurve:
    """The cost of n tokens, c n + d n^2."""

    linear: float
    square: float

    @classmethod
    def through(cls, short: Measured, long: Measured) -> "CostCurve":
        """The curve through two measurements, with both parts at least 0; a straight line if their lengths are
        equal."""
        if short.tokens == long.tokens:
            return cls(long.each, 0.0)
        square = max(0.0, (long.each - short.each) / (long.tokens - short.tokens))
        return cls(max(0.0, long.each - square * long.tokens), square)

    def at(self, tokens: int) -> float:
        return self.linear * tokens + self.square * tokens**2
