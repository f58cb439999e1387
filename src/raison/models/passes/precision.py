"""A 16-bit twin of a model for evaluations without gradients, and how well the two agree.

The weights have 16 bits. Autocast would convert the weights in every pass and keep the states in single precision
between the matrix products (on 6 layers of 384: 1.5 instead of 1.9 times the throughput).
"""

import copy
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from math import ceil, isnan
from typing import Generic, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from raison.core.errors import UnsupportedError
from raison.core.problem import Evaluations, Problem
from raison.models.passes.outputs.readout import Readout
from raison.models.stack.blocks import put, twin
from raison.models.stack.eval_mode import evaluating
from raison.models.stack.fingerprint import fingerprint
from raison.models.stack.hooks import following
from raison.models.stack.locks import OwnLock
from raison.models.stack.transformer import embedding_tables
from raison.numerics.measures.agreement import spearman

CHECKED_SHARE = 0.02
"""The share of perturbed texts evaluated in 16 bits that are evaluated again in the model's precision."""
CHECKED_LEAST = 5
"""Minimum number of values for a rank correlation."""

AdapterT = TypeVar("AdapterT")


@dataclass(frozen=True, slots=True, eq=False)
class OwnReadout(Readout):
    """The model's own readout, in its own precision, over 16-bit states.

    A 16-bit logit has two or three digits; rounding would tie predictions that the states still distinguish.
    """

    own: Readout
    dtype: torch.dtype

    def logits(self, states: Sequence[Float[Tensor, "rows _reads hidden"]]) -> Float[Tensor, "rows classes"]:
        return self.own.logits([read.to(self.dtype) for read in states])


class ReducedModel(Generic[AdapterT]):
    """Makes the twin of a model on first use, and again after the model has changed.

    The twin takes half the memory of a model in single precision, for as long as this object lives; the model itself is
    only read. Parts that are neither layers nor embedding tables of the transformer, such as a classification head,
    stay in the model's own precision: they cost next to nothing, and share the model's tensors.
    """

    def __init__(self, model: nn.Module, core: PreTrainedModel) -> None:
        self._model = model
        self._core = core
        self._seen: tuple[Hashable, ...] | None = None
        self._tree: nn.Module | None = None
        self._made: tuple[AdapterT, AdapterT] | None = None
        self._lock = OwnLock()

    def __deepcopy__(self, memo: dict[int, object]) -> "ReducedModel[AdapterT]":
        """A new object for a deep copy of the model: a lock cannot be copied, and twins are made on first use."""
        return ReducedModel(copy.deepcopy(self._model, memo), copy.deepcopy(self._core, memo))

    def get(self, owner: AdapterT, make: Callable[[nn.Module], AdapterT]) -> AdapterT:
        """The result of `make` with the twin for an owner; only the last owner's is kept.

        Raises UnsupportedError for weights that are quantised or offloaded.
        """
        # In evaluation mode: the training flag is not a change, and other threads may be evaluating the model.
        with self._lock, evaluating(self._model):
            now = fingerprint(self._model)
            if self._tree is None or now != self._seen:
                # Free the old twin first: the two need not be in memory together.
                self._made = self._tree = None
                self._tree, self._seen = reduced_twin(self._model, self._core), now
            if self._made is None or self._made[0] is not owner:
                self._made = (owner, make(self._tree))
            return self._made[1]


def reduced_twin(model: nn.Module, core: PreTrainedModel) -> nn.Module:
    """The same module tree with the transformer's floating point weights in bfloat16; buffers are shared."""
    named = dict(core.base_model.named_parameters())
    odd = [name for name, p in named.items() if type(p) is not nn.Parameter or p.is_meta or not p.is_floating_point()]
    if odd:
        raise UnsupportedError(
            f"{type(core).__name__} cannot be evaluated in bfloat16",
            [f"its parameter {odd[0]} is quantised, offloaded or of another type"],
            "Leave precision at float32, or load the model unquantised on one device.",
        )
    twins: dict[int, nn.Module] = {}
    tree = twin(model, twins)
    # Ordinary tensors even in the caller's inference mode: the twin outlives it.
    with torch.inference_mode(False), torch.no_grad():
        values = {id(p): nn.Parameter(p.detach().to(torch.bfloat16), requires_grad=False) for p in named.values()}
    for table in embedding_tables(core):
        # The twin was copied without the hooks that shift embeddings, and threads shift them one by one.
        twins[id(table)].register_forward_hook(following(table))
    if core.base_model is core:
        put(twins[id(core)], values)
        return tree
    put(twins[id(core.base_model)], values)
    for child in core.children():
        dtype = next((p.dtype for p in child.parameters()), None)
        if child is not core.base_model and dtype is not None:
            twins[id(child)].register_forward_pre_hook(_casts(dtype))
    return tree


def rank_agreement(problem: Problem) -> list[dict[str, object]] | None:
    """Rank correlation, per text, of perturbed texts' values in 16 bits and in the model's own precision.

    A fiftieth of the keeps that were evaluated, at least five, drawn by the seed and the text alone, are evaluated
    again; the ledger counts them. The correlation is Spearman's, None where it is undefined (fewer than two different
    values). None instead of a list if nothing was evaluated in 16 bits.
    """
    masks = [
        np.array([np.frombuffer(bits, bool) for bits in sorted(problem.reduced_keeps(text))])
        for text in range(len(problem.encoding))
    ]
    # A 16-bit model is its own twin.
    if problem.reduced is None or not any(map(len, masks)) or problem.reduced() is problem.model:
        return None
    counts = [min(len(keeps), max(CHECKED_LEAST, ceil(CHECKED_SHARE * len(keeps)))) for keeps in masks]
    draws = zip(problem.generators("precision"), masks, counts, problem.encoding.unit_counts, strict=True)
    sample = [
        torch.from_numpy(
            keeps[np.sort(rng.choice(len(keeps), count, replace=False))] if count else np.ones((0, n), bool)
        )
        for rng, keeps, count, n in draws
    ]
    full = replace(problem, reduced=None, evaluations=Evaluations(), counted=set())
    pairs = zip(problem.values(sample), full.values(sample), counts, strict=True)
    return [_finding(reduced.numpy(), single.numpy(), count) for reduced, single, count in pairs]


def _finding(reduced: np.ndarray, single: np.ndarray, count: int) -> dict[str, object]:
    correlation = spearman(reduced, single) if count > 1 else float("nan")
    return {
        "evaluations": "bfloat16",
        "rank_correlation": None if isnan(correlation) else correlation,
        "checked": count,
    }


def _casts(dtype: torch.dtype) -> Callable[[nn.Module, tuple[object, ...]], tuple[object, ...]]:
    def cast(_module: nn.Module, args: tuple[object, ...]) -> tuple[object, ...]:
        return tuple(arg.to(dtype) if isinstance(arg, Tensor) and arg.is_floating_point() else arg for arg in args)

    return cast
