"""Two families written out step by step from their weights, in any algebra: literal references go through them.

An algebra says what a state is, and what the steps do with it. `linear` gets a function that is linear in its tensor,
`shift` a constant; everything else that a model does is `norm`, `softmax`, `activation`, `matmul` and `gate`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

State = Any


class Algebra(Protocol):
    def linear(self, state: State, function: Callable[[Tensor], Tensor]) -> State: ...

    def shift(self, state: State, constant: Tensor) -> State: ...

    def add(self, first: State, second: State) -> State: ...

    def norm(self, state: State, eps: float, centred: bool) -> State: ...

    def softmax(self, state: State) -> State: ...

    def activation(self, state: State, function: Callable[[Tensor], Tensor]) -> State: ...

    def matmul(self, first: State, second: State) -> State: ...

    def gate(self, gate: State, gated: State) -> State: ...


def bert_logits(model: PreTrainedModel, state: State, algebra: Algebra, types: Tensor) -> State:
    """Class logits of one text from its word embeddings, (tokens, hidden) to (classes,)."""
    bert: Any = model.bert
    count = len(types)
    places = bert.embeddings.position_embeddings.weight[:count] + bert.embeddings.token_type_embeddings.weight[types]
    state = _layer_norm(algebra, algebra.shift(state, places.detach()), bert.embeddings.LayerNorm)
    heads = model.config.num_attention_heads
    for layer in bert.encoder.layer:
        own = layer.attention.self
        query, key, value = (
            algebra.linear(_dense(algebra, state, dense), lambda x: _split(x, heads))
            for dense in (own.query, own.key, own.value)
        )
        mixed = _attention(algebra, query, key, value)
        mixed = _dense(algebra, algebra.linear(mixed, _merge), layer.attention.output.dense)
        state = _layer_norm(algebra, algebra.add(state, mixed), layer.attention.output.LayerNorm)
        inner = algebra.activation(_dense(algebra, state, layer.intermediate.dense), nn.functional.gelu)
        inner = _dense(algebra, inner, layer.output.dense)
        state = _layer_norm(algebra, algebra.add(state, inner), layer.output.LayerNorm)
    first = algebra.linear(state, lambda x: x[..., 0, :])
    pooled = algebra.activation(_dense(algebra, first, bert.pooler.dense), torch.tanh)
    return _dense(algebra, pooled, model.classifier)


def llama_logits(model: PreTrainedModel, state: State, algebra: Algebra, count: int) -> State:
    """Class logits of one text from its word embeddings, read at the last token."""
    llama: Any = model.model
    config = model.config
    groups = config.num_attention_heads // config.num_key_value_heads
    size = config.hidden_size // config.num_attention_heads
    later = torch.full((count, count), -1e4, dtype=torch.float64).triu(1)
    for layer in llama.layers:
        own = layer.self_attn
        normed = _rms_norm(algebra, state, layer.input_layernorm)
        query, key, value = (
            algebra.linear(_dense(algebra, normed, dense), lambda x, n=number: _split(x, n))
            for dense, number in (
                (own.q_proj, config.num_attention_heads),
                (own.k_proj, config.num_key_value_heads),
                (own.v_proj, config.num_key_value_heads),
            )
        )
        query, key = (algebra.linear(part, lambda x: _rotated(x, size)) for part in (query, key))
        key, value = (algebra.linear(part, lambda x: x.repeat_interleave(groups, dim=-3)) for part in (key, value))
        mixed = algebra.linear(_attention(algebra, query, key, value, later), _merge)
        state = algebra.add(state, _dense(algebra, mixed, own.o_proj))
        normed = _rms_norm(algebra, state, layer.post_attention_layernorm)
        gate = algebra.activation(_dense(algebra, normed, layer.mlp.gate_proj), nn.functional.silu)
        inner = algebra.gate(gate, _dense(algebra, normed, layer.mlp.up_proj))
        state = algebra.add(state, _dense(algebra, inner, layer.mlp.down_proj))
    last = algebra.linear(_rms_norm(algebra, state, llama.norm), lambda x: x[..., -1, :])
    return _dense(algebra, last, model.score)


@dataclass(frozen=True)
class Graph:
    """States are tensors with a graph; `rules` names what Ali et al. 2022 and Achtibat et al. 2024 change in it."""

    softmax_constant: bool
    identity: bool
    gates: str
    halved: bool

    def linear(self, state: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        return function(state)

    def shift(self, state: Tensor, constant: Tensor) -> Tensor:
        return state + constant

    def add(self, first: Tensor, second: Tensor) -> Tensor:
        return first + second

    def norm(self, state: Tensor, eps: float, centred: bool) -> Tensor:
        if centred:
            state = state - state.mean(-1, keepdim=True)
        return state / ((state * state).mean(-1, keepdim=True) + eps).sqrt().detach()

    def softmax(self, state: Tensor) -> Tensor:
        shares = state.exp() / state.exp().sum(-1, keepdim=True)
        return shares.detach() if self.softmax_constant else shares

    def activation(self, state: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        return state * (function(state) / state).detach() if self.identity else function(state)

    def matmul(self, first: Tensor, second: Tensor) -> Tensor:
        if not self.halved:
            return first @ second
        return (first @ second.detach() + first.detach() @ second) / 2

    def gate(self, gate: Tensor, gated: Tensor) -> Tensor:
        if self.gates == "constant":
            return gate.detach() * gated
        if self.gates == "shared":
            return (gate.detach() * gated + gate * gated.detach()) / 2
        return gate * gated


@dataclass(frozen=True)
class Parts:
    """A state at the text and at the baseline, and the part of their difference that comes from each token."""

    here: Tensor
    there: Tensor
    parts: Sequence[Tensor]


class Differences:
    """DeepLIFT carried forwards: the rescale rule splits each step's difference in proportion, products by the middle.

    Everything is made of linear steps, functions of one number, and products.
    """

    def linear(self, state: Parts, function: Callable[[Tensor], Tensor]) -> Parts:
        return Parts(function(state.here), function(state.there), [function(part) for part in state.parts])

    def shift(self, state: Parts, constant: Tensor) -> Parts:
        return Parts(state.here + constant, state.there + constant, state.parts)

    def add(self, first: Parts, second: Parts) -> Parts:
        parts = [one + other for one, other in zip(first.parts, second.parts, strict=True)]
        return Parts(first.here + second.here, first.there + second.there, parts)

    def activation(self, state: Parts, function: Callable[[Tensor], Tensor]) -> Parts:
        here, there = function(state.here), function(state.there)
        moved = state.here != state.there
        ratio = torch.where(moved, (here - there) / torch.where(moved, state.here - state.there, 1), 0)
        return Parts(here, there, [part * ratio for part in state.parts])

    def gate(self, gate: Parts, gated: Parts) -> Parts:
        return self._product(gate, gated, torch.mul)

    def matmul(self, first: Parts, second: Parts) -> Parts:
        return self._product(first, second, torch.matmul)

    def _product(self, first: Parts, second: Parts, product: Callable[[Tensor, Tensor], Tensor]) -> Parts:
        middles = (first.here + first.there) / 2, (second.here + second.there) / 2
        parts = [
            product(one, middles[1]) + product(middles[0], other)
            for one, other in zip(first.parts, second.parts, strict=True)
        ]
        return Parts(product(first.here, second.here), product(first.there, second.there), parts)

    def norm(self, state: Parts, eps: float, centred: bool) -> Parts:
        if centred:
            state = self.linear(state, lambda x: x - x.mean(-1, keepdim=True))
        power = self.linear(self.gate(state, state), lambda x: x.mean(-1, keepdim=True))
        return self.gate(state, self.activation(power, lambda x: (x + eps) ** -0.5))

    def softmax(self, state: Parts) -> Parts:
        total = self.linear(self.activation(state, torch.exp), lambda x: x.sum(-1, keepdim=True))
        minus = self.linear(self.activation(total, torch.log), lambda x: -x)
        return self.activation(self.add(state, minus), torch.exp)


def _attention(algebra: Algebra, query: State, key: State, value: State, mask: Tensor | None = None) -> State:
    scale = 1 / math.sqrt(algebra_size(query))
    scores = algebra.matmul(algebra.linear(query, lambda x: x * scale), algebra.linear(key, lambda x: x.mT))
    if mask is not None:
        scores = algebra.shift(scores, mask)
    return algebra.matmul(algebra.softmax(scores), value)


def algebra_size(state: State) -> int:
    """Features of a head."""
    tensor = state.here if isinstance(state, Parts) else state
    return int(tensor.shape[-1])


def _dense(algebra: Algebra, state: State, dense: Any) -> State:
    state = algebra.linear(state, lambda x: x @ dense.weight.detach().T)
    return state if dense.bias is None else algebra.shift(state, dense.bias.detach())


def _layer_norm(algebra: Algebra, state: State, norm: Any) -> State:
    state = algebra.linear(algebra.norm(state, norm.eps, True), lambda x: x * norm.weight.detach())
    return algebra.shift(state, norm.bias.detach())


def _rms_norm(algebra: Algebra, state: State, norm: Any) -> State:
    return algebra.linear(algebra.norm(state, norm.variance_epsilon, False), lambda x: x * norm.weight.detach())


def _split(values: Tensor, heads: int) -> Tensor:
    """(..., tokens, hidden) to (..., heads, tokens, features)."""
    return values.unflatten(-1, (heads, -1)).transpose(-3, -2)


def _merge(values: Tensor) -> Tensor:
    return values.transpose(-3, -2).flatten(-2)


def _rotated(values: Tensor, size: int) -> Tensor:
    """Rotary positions: feature i turns with feature i + size / 2, by the angle position / 10000^(2 i / size)."""
    angles = torch.arange(values.shape[-2])[:, None] / 10000 ** (torch.arange(0, size, 2) / size)
    angles = angles.to(values).repeat(1, 2)
    first, second = values.chunk(2, dim=-1)
    return values * angles.cos() + torch.cat([-second, first], -1) * angles.sin()
