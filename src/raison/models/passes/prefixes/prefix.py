"""A prompt's key-value cache: computed once, kept as long as the model is unchanged."""

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel
from transformers.cache_utils import DynamicLayer

from raison.models.stack.caches import given_cache
from raison.models.stack.eval_mode import is_halved
from raison.models.stack.fingerprint import fingerprint
from raison.models.stack.locks import OwnLock
from raison.models.stack.structure import has_unseen_state

STORED = 4
"""Maximum number of stored prompts; the least recently used is dropped first."""

PrefixStates = Float[Tensor, "1 _heads prefix _features"]


@dataclass(frozen=True, slots=True, eq=False)
class Prefix:
    """The stored results of a pass over a prompt, all without gradients."""

    states: Float[Tensor, "prefix hidden"]
    layers: tuple[tuple[PrefixStates, PrefixStates] | None, ...]
    """Keys and values of each layer; None for a layer that shares those of another."""

    def __len__(self) -> int:
        return len(self.states)

    def at(self, places: list[int]) -> "Prefix":
        """The stored results at some places, as if these were the prompt."""
        if places == list(range(len(places))):
            return Prefix(
                self.states[: len(places)],
                tuple(
                    None if stored is None else (stored[0][:, :, : len(places)], stored[1][:, :, : len(places)])
                    for stored in self.layers
                ),
            )
        index = torch.tensor(places, device=self.states.device)
        return Prefix(
            self.states[index],
            tuple(
                None if stored is None else (stored[0][:, :, index], stored[1][:, :, index]) for stored in self.layers
            ),
        )

    def cache(self, batch: int) -> DynamicCache:
        """A new cache object for one pass over `batch` rows that follow the prompt.

        It holds the stored tensors without a copy. A pass does not change them: it concatenates into new ones. Built
        without a config, so that no layer is cropped to a sliding window: the attention mask alone decides.
        """
        cache = DynamicCache()
        for stored in self.layers:
            layer = DynamicLayer()
            if stored is not None:
                layer.lazy_initialization(*stored)
                layer.keys, layer.values = (tensor.expand(batch, -1, -1, -1) for tensor in stored)
            cache.layers.append(layer)
        return cache


def compute_prefix(base: PreTrainedModel, ids: Int[Tensor, " prefix"]) -> Prefix:
    """One pass over the prompt. `base` is the transformer without its head."""
    cache = DynamicCache()
    row = ids.to(base.device)[None]
    # Even in a caller's inference mode, whose tensors could not enter a differentiable pass later.
    with torch.inference_mode(False), torch.no_grad():
        output = base(
            input_ids=row.clone(),
            attention_mask=torch.ones_like(row),
            position_ids=torch.arange(row.shape[1], device=row.device)[None],
            use_cache=True,
            **given_cache(base, cache),
        )
    return Prefix(output[0][0], layers_of(cache))


def layers_of(cache: DynamicCache) -> tuple[tuple[PrefixStates, PrefixStates] | None, ...]:
    """Keys and values of each layer after a pass over one row."""
    layers: list[tuple[Tensor, Tensor] | None] = []
    for layer in cache.layers:
        keys: Tensor | None = layer.keys  # type: ignore[union-attr]
        values: Tensor | None = layer.values  # type: ignore[union-attr]
        layers.append(None if keys is None or values is None else (keys, values))
    return tuple(layers)


class PrefixStore:
    """The stored prompts of one model, by token ids. Threads that need the same one compute it once."""

    def __init__(self, base: PreTrainedModel) -> None:
        self._base = base
        self._doors = {self}
        self._found: OrderedDict[tuple[int, ...], Prefix] = OrderedDict()
        self._model: tuple[Hashable, ...] = ()
        self._lock = OwnLock()

    def get(self, ids: Int[Tensor, " prefix"]) -> Prefix:
        """The prompt's states, from the store if present and the model is unchanged, as far as that can be seen."""
        if not self._doors.isdisjoint(_CLOSED.get()) or has_unseen_state(self._base):
            return compute_prefix(self._base, ids)
        with self._lock:
            now = fingerprint(self._base)
            if now != self._model:
                self._found.clear()
                self._model = now
            key = (is_halved(), *ids.tolist())
            if key not in self._found:
                # Free the old prompt first: the two need not be in memory together.
                while len(self._found) >= STORED:
                    self._found.popitem(last=False)
                self._found[key] = compute_prefix(self._base, ids)
            self._found.move_to_end(key)
            return self._found[key]

    def follow(self, other: "PrefixStore") -> None:
        """Close this store whenever `other` is closed. A twin's store follows that of the model it was made from."""
        self._doors.add(other)

    @contextmanager
    def closed(self) -> Iterator[None]:
        """Inside, this thread computes every prompt again and stores none. Contexts can be nested."""
        token = _CLOSED.set((*_CLOSED.get(), self))
        try:
            yield
        finally:
            _CLOSED.reset(token)


_CLOSED: ContextVar[tuple[PrefixStore, ...]] = ContextVar("raison_closed_prefix_stores", default=())
