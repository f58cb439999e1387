"""The speed and size of a model on this machine, measured in about a second."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.inputs.encoding import Encoding
from raison.core.method import Cost
from raison.core.targets.target import Target
from raison.models.adapters.blackbox.function import BlackBox
from raison.models.adapters.checks.peak_memory import HELD, PeakMemory
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.writing.statements import Statements

REPEATS = 8


@dataclass(frozen=True, slots=True)
class Speed:
    """Seconds per token of a forward pass, and of a forward and backward pass; bytes of the weights and of a batch.

    `batch_bytes` is what a full batch keeps for its backward pass, the peak of memory; for statements, what a process
    holds for one.
    """

    forward: float
    backward: float
    model_bytes: int
    batch_bytes: int

    def seconds(self, cost: Cost, length: int) -> float:
        """The time of passes of a text of `length` tokens; a backward pass includes its forward pass."""
        alone = max(0, cost.forwards - cost.backwards)
        return length * (alone * self.forward + cost.backwards * self.backward)


def measure_speed(model: Classifier | BlackBox | Statements, encoding: Encoding) -> Speed:
    """Time one forward and one backward pass of the texts of an encoding, after a warm-up on one text.

    A function, whose calls may be expensive, is called once per text; larger batches may be faster. Neither it nor a
    model that takes no embeddings has gradients, nor have statements, which share the beginnings of their prompts, as
    in a real run.
    """
    if isinstance(model, Statements):
        return _of_statements(model, encoding)
    if isinstance(model, BlackBox):
        seconds = _seconds(lambda: model.asking.answers(list(dict.fromkeys(encoding.texts))))
        return Speed(forward=seconds / sum(encoding.lengths), backward=0.0, model_bytes=0, batch_bytes=0)
    keeps = [torch.arange(REPEATS)[:, None] % (torch.arange(count) + 2) > 0 for count in encoding.unit_counts]
    one = encoding.select([0])
    model.masked_logits(one, keeps[:1], model.removals[0])
    tokens = sum(encoding.lengths)
    forward = _seconds(lambda: model.masked_logits(encoding, keeps, model.removals[0]))
    if not model.offers(WordEmbeddings):
        with PeakMemory(model.model.parameters()) as memory:
            model.masked_logits(encoding, keeps, model.removals[0])
        full = max(1.0, model.budget.tokens / (REPEATS * tokens))
        return Speed(forward / (REPEATS * tokens), 0.0, _weights(model), int(HELD * full * memory.peak))
    activations = _kept(model, lambda: _gradients(model, one))
    backward = _seconds(lambda: _gradients(model, encoding))
    return Speed(
        forward=forward / (REPEATS * tokens),
        backward=backward / (REPEATS * tokens),
        model_bytes=_weights(model),
        batch_bytes=int(activations / (REPEATS * one.lengths[0]) * model.budget.tokens),
    )


def _of_statements(model: Statements, encoding: Encoding) -> Speed:
    keeps = [torch.arange(REPEATS)[:, None] % (torch.arange(count) + 2) > 0 for count in encoding.unit_counts]
    model.fresh().masked_logits(encoding.select([0]), keeps[:1], model.removals[0])
    fresh, reader = model.fresh(), model.reader
    assert isinstance(reader, Classifier), "a server's time is not measured"
    with PeakMemory(reader.model.parameters()) as memory:
        seconds = _seconds(lambda: fresh.masked_logits(encoding, keeps, model.removals[0]))
    # Equal keeps are run once.
    tokens = sum(length * len(rows.unique(dim=0)) for length, rows in zip(encoding.lengths, keeps, strict=True))
    full = max(1.0, reader.budget.tokens / tokens)
    return Speed(seconds / tokens, 0.0, _weights(reader), int(HELD * full * memory.peak))


def _kept(model: Classifier, work: Callable[[], object]) -> int:
    """Bytes that passes keep for their backward pass, besides the weights."""
    weights = {parameter.data_ptr() for parameter in model.model.parameters()}
    saved: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        saved[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        work()
    return sum(size for pointer, size in saved.items() if pointer not in weights)


def _weights(model: Classifier) -> int:
    return sum({parameter.data_ptr(): parameter.nbytes for parameter in model.model.parameters()}.values())


def _gradients(model: Classifier, encoding: Encoding) -> None:
    embeds = model.ask(WordEmbeddings).embed(encoding)
    points = torch.ones(REPEATS)
    target = Target(torch.zeros(len(encoding), dtype=torch.long), None, "logit", model.multi_label)

    def stay(text: int, positions: Tensor) -> Tensor:
        return embeds[text].expand(len(positions), -1, -1)

    model.ask(WordEmbeddings).path_gradients(encoding, stay, points, points, target)


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
