"""RPI written out: one path at a time, one point at a time, the whole model in float64.

The attention of a copy of the model goes through a function of this file, which puts other probabilities in place of a
layer's own; nothing of raison takes part. Draws are made again from their documented order.
"""

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.masking_utils import eager_mask

from raison.core.problem import Evaluations, Ledger, Problem
from raison.core.targets.target import Of, Target
from raison.models.adapters.classifier import Classifier
from tests.tiny import build

NAME = "reference_replaced"
Read = Callable[[PreTrainedModel, Tensor], Tensor]
"""The class logits of one text from its ids, (1, tokens)."""

READS = {
    "bert": "first",
    "roberta": "first",
    "distilbert": "first",
    "gpt2": "last",
    "llama": "last",
    "mistral": "last",
    "modernbert": "first",
    "modernbert mean": "mean",
}
"""What each tiny model's head reads, by its architecture's documentation."""


INDEX = 1
"""The class that is explained."""


def build_any(name: str) -> tuple[PreTrainedModel, Any]:
    """A tiny model by a name of READS."""
    model, tokenizer = build(name.split()[0])
    if name.endswith(" mean"):
        model.config.classifier_pooling = "mean"
    return model, tokenizer


class _Double(TorchFunctionMode):
    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        def lifted(value: Any) -> Any:
            return torch.float64 if value is torch.float32 else value

        kwargs = {name: lifted(value) for name, value in (kwargs or {}).items()}
        return (Tensor.double if func is Tensor.float else func)(*map(lifted, args), **kwargs)


@contextmanager
def double_throughout() -> Iterator[None]:
    """Llama and others compute norms, angles and the softmax in single precision, whatever their weights: not here."""
    with _Double():
        yield


@dataclass
class _Pass:
    """One pass of a model: which layer's attention is replaced by what, and what all layers attended to."""

    layer: int | None = None
    attention: Tensor | None = None
    own: list[Tensor] = field(default_factory=list)


_PASSES: list[_Pass] = []


def _replaced(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **_: Any,
) -> tuple[Tensor, Tensor]:
    here = _PASSES[-1]
    key, value = (states.repeat_interleave(query.shape[1] // states.shape[1], 1) for states in (key, value))
    scores = query @ key.transpose(2, 3) * (query.shape[-1] ** -0.5 if scaling is None else scaling)
    probabilities = (scores if attention_mask is None else scores + attention_mask).softmax(-1)
    if len(here.own) == here.layer:
        assert here.attention.shape == probabilities[0].shape
        probabilities = here.attention[None]
    here.own.append(probabilities[0])
    return (probabilities @ value).transpose(1, 2).contiguous(), probabilities


AttentionInterface.register(NAME, _replaced)
AttentionMaskInterface.register(NAME, eager_mask)


class Literal:
    """A copy of a model in float64, which runs whole for every question; `reads` is what its head reads."""

    def __init__(self, model: PreTrainedModel, reads: str, labels: Sequence[int] | None = None) -> None:
        self.model = copy.deepcopy(model).double().eval()
        self.model.set_attn_implementation(NAME)
        self._labels = None if labels is None else list(labels)
        self.reads = reads

    def logits(self, ids: Tensor, layer: int | None = None, attention: Tensor | None = None) -> Tensor:
        """(classes,), with (heads, query, key) probabilities in place of a layer's own."""
        _PASSES.append(_Pass(layer, attention))
        try:
            found = self.model(input_ids=ids[None]).logits[0]
            return found if self._labels is None else found[-1, self._labels]
        finally:
            self._last = _PASSES.pop()

    def attention(self, ids: Tensor) -> list[Tensor]:
        """What every layer attends to."""
        with torch.no_grad():
            self.logits(ids)
        return self._last.own

    def gradient(self, ids: Tensor, layer: int, attention: Tensor, of: str) -> Tensor:
        """Of the class's probability or logit, with respect to the probabilities that are put in."""
        leaf = attention.detach().clone().requires_grad_()
        logits = self.logits(ids, layer, leaf)
        value = logits[INDEX] if of == "logit" else logits.exp()[INDEX] / logits.exp().sum()
        return torch.autograd.grad(value, leaf)[0]

    def shares(self, tokens: int) -> list[float]:
        """How much of the prediction is made from each position."""
        if self.reads == "mean":
            return [1 / tokens] * tokens
        return [float(row == (0 if self.reads == "first" else tokens - 1)) for row in range(tokens)]


@dataclass(frozen=True)
class Recipe:
    """The settings of RPI, with layers by their numbers."""

    layers: tuple[int, ...]
    baselines: int = 3
    steps: int = 4
    timesteps: int = 500
    t: int | None = None
    schedule: str = "linear"
    variant: str = "paper"
    multiply: bool = True

    def share(self, t: int) -> float:
        """alpha-bar, by an explicit product or the closed form."""
        last = self.timesteps
        if self.variant == "code":
            betas = np.linspace(1e-4, 0.02, last + 1)
            return float(np.exp(np.cumsum(np.log(1 - betas)))[t])
        if self.schedule == "cosine":
            ends = [math.cos((at / last + 0.008) / 1.008 * math.pi / 2) ** 2 for at in (t, 0)]
            return ends[0] / ends[1]
        share = 1.0
        for step in range(1, t + 1):
            share *= 1 - (1e-4 + (0.02 - 1e-4) * (step - 1) / (last - 1))
        return share


def literal_maps(
    model: Literal, ids: Tensor, rng: np.random.Generator, recipe: Recipe, spared: Sequence[int] = ()
) -> list[Tensor]:
    """All candidates of one text, (tokens,) each; the rows `spared` get no noise."""
    seed = rng.integers(2**63)
    own = model.attention(ids)
    shares = model.shares(len(ids))
    found = []
    for layer in recipe.layers:
        draws = np.random.default_rng([seed, layer])
        alone = layer == len(own) - 1 and model.reads != "mean"
        rows = [row for row, share in enumerate(shares) if share] if alone else list(range(len(ids)))
        for _ in range(recipe.baselines):
            start = _baseline(own[layer][:, rows], rows, draws, recipe, spared)
            whole = _path(model, ids, layer, (own[layer], start, rows), recipe)
            found.append(sum(shares[row] * whole[number] for number, row in enumerate(rows)))
    return found


def _baseline(
    own: Tensor, rows: list[int], draws: np.random.Generator, recipe: Recipe, spared: Sequence[int]
) -> Tensor:
    t = recipe.t
    if t is None:
        t = recipe.timesteps if recipe.variant == "code" else int(draws.integers(1, recipe.timesteps, endpoint=True))
    noise = torch.from_numpy(draws.standard_normal(own.shape))
    share = recipe.share(t)
    if recipe.variant == "paper":
        return math.sqrt(share) * own + math.sqrt(1 - share) * noise
    for number, row in enumerate(rows):
        if row in spared:
            noise[:, number] = own[:, number]
    return math.sqrt(share) * own + (1 - share) * noise


def _path(model: Literal, ids: Tensor, layer: int, ends: tuple[Tensor, Tensor, list[int]], recipe: Recipe) -> Tensor:
    """Equation 4 with the mean over heads, (rows, tokens)."""
    whole, start, rows = ends
    own = whole[:, rows]
    total, code = torch.zeros_like(own), recipe.variant == "code"
    for j in range(0 if code else 1, recipe.steps + 1):
        point = start + j / recipe.steps * (own - start)
        attention = whole.clone()
        attention[:, rows] = point
        gradient = model.gradient(ids, layer, attention, "logit" if code else "probability")[:, rows]
        total += gradient * point if recipe.multiply else gradient
    way = own / (recipe.steps + 1) if code else (own - start) / recipe.steps
    return (way * total).mean(0)


def problem_of(model: Classifier, texts: Sequence[str], of: Of = "probability") -> Problem:
    """Explain the class INDEX of the texts, by words."""
    encoding = model.encode(list(texts), "word")
    target = Target(torch.full((len(texts),), INDEX), None, of)
    return Problem(model, encoding, target, "delete", Ledger.empty(len(texts)), Evaluations())
