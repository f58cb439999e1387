"""Token vectors carried through transformer layers: what each source token contributes to each position's state.

Vectors have the axes (rows, sources, hidden): the vectors of a row, one per source token, sum to the row's state. A
layer is linear once its attention, the divisors of its norms and the slopes of its activations are taken as constants.
Only biases belong to no source token; they are distributed among the sources.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.capabilities.decomposition import Anatomy
from raison.core.internals.anatomy import Activation, Affine, FeedForward, HeadWeights, LayerWeights, Norm, Trace

Gate = Literal["constant", "half"]
Vectors = Float[Tensor, "rows sources hidden"]

SCRATCH = 1 << 26
"""Numbers that an intermediate product may hold: 256 MiB in single precision."""


def layer_output(trace: Trace, layer: int, weights: LayerWeights) -> Float[Tensor, "tokens hidden"]:
    """The output of a layer, from its input and its attention."""
    after = attended(trace, layer, weights)
    if weights.norm_first:
        return after + weights.feed_forward(weights.mlp_norm(after))
    state = _normed(after, weights.attention_norm)
    return weights.mlp_norm(state + weights.feed_forward(state))


def attended(trace: Trace, layer: int, weights: LayerWeights) -> Float[Tensor, "tokens hidden"]:
    """The sum of a layer's attention and its residual, before a norm of it."""
    state, attention = trace.states[layer], trace.attention[layer]
    entering = _normed(state, weights.attention_norm) if weights.norm_first else state
    values = _by_head(weights.value(entering), len(attention)).transpose(0, 1)
    return state + weights.output((attention @ values).transpose(0, 1).flatten(1))


def head_output(trace: Trace, head: HeadWeights) -> Float[Tensor, " classes"]:
    """The logits, from the output of the last layer."""
    state = trace.states[-1] if head.norm is None else head.norm(trace.states[-1])
    output = trace.rows @ state
    for stage in head.stages:
        output = stage(output)
    return output


def _by_head(x: Float[Tensor, "*rows inputs"], heads: int) -> Float[Tensor, "*rows heads features"]:
    return x.reshape(*x.shape[:-1], heads, -1)


def contributions(
    trace: Trace, layer: int, weights: LayerWeights, scratch: int = SCRATCH
) -> Iterator[tuple[slice, Vectors]]:
    """Blocks of rows of one layer's sum_h A^h_ij W_O^h (W_V^h x_j + b_V^h) + [i = j] x_i.

    x_j is the state of token j as the layer's attention reads it, and the residual x_i is the layer's input. The output
    matrix's bias belongs to no token and is left out.
    """
    state, attention = trace.states[layer], trace.attention[layer]
    entering = _normed(state, weights.attention_norm) if weights.norm_first else state
    values = _by_head(weights.value(entering), len(attention))
    blocks = _by_head(weights.output.weight, len(attention))
    spoken = torch.einsum("jhf,dhf->jhd", values, blocks)
    tokens, hidden = state.shape
    for rows in _slices(tokens, 2 * tokens * hidden, scratch):
        # Per source: (rows, heads) times (heads, hidden).
        vectors = (attention[:, rows].permute(2, 1, 0) @ spoken).transpose(0, 1).contiguous()
        vectors[torch.arange(len(vectors)), torch.arange(tokens)[rows]] += state[rows]
        yield rows, vectors


def followed(
    anatomy: Anatomy,
    traces: list[Trace],
    matrix: Callable[[Trace, int, LayerWeights], Float[Tensor, "query key"]],
) -> list[Float[Tensor, " tokens"]]:
    """The prediction's row of M_L ... M_1, in double precision, rescaled in every layer to sum to 1.

    From the last layer down: a row times a matrix per layer, which cannot overflow and needs no product of matrices.
    """
    flows = [trace.rows.double() for trace in traces]
    for layer in reversed(range(anatomy.layers)):
        weights = anatomy.weights(layer)
        for text, trace in enumerate(traces):
            flow = flows[text] @ matrix(trace, layer, weights).double()
            flows[text] = flow / flow.sum().clamp_min(torch.finfo(flow.dtype).tiny)
    return flows


@dataclass(frozen=True, slots=True)
class Choices:
    """Choices that the vectors' sum leaves open."""

    gate: Gate = "constant"
    """In a product activation(g) u, activation(g) is a constant factor of u's vectors, or g and u get half of the
    product each."""
    scratch: int = SCRATCH


def through_layer(
    vectors: Vectors | None, trace: Trace, layer: int, weights: LayerWeights, choices: Choices
) -> Float[Tensor, "read sources hidden"]:
    """The vectors of a layer's output states, from those of its input states; None stands for the first layer's input.

    In the first layer, a token's state is its own vector, and its value's bias stays with it. The last layer is
    computed only for the rows that the prediction is made from. Besides two sets of vectors (three in pre-norm models),
    memory holds about `choices.scratch` numbers: heads, and then sources, are mixed a few at a time.
    """
    last = layer == len(trace.attention) - 1
    read = trace.rows.nonzero()[:, 0] if last else torch.arange(len(trace.rows), device=trace.rows.device)
    if vectors is None:
        parts = list(contributions(trace, layer, weights, choices.scratch))
        passed = torch.cat([part for _, part in parts])[read]
        bias = weights.output.bias
    else:
        entering = _normed_vectors(vectors, weights.attention_norm) if weights.norm_first else vectors
        attention = trace.attention[layer][:, read]
        passed = mixed_vectors(entering, attention, weights.value, weights.output, choices.scratch)
        passed += vectors[read]
        bias = _attention_bias(attention, weights)
    widest = 4 * max(len(weights.feed_forward.inner.weight), passed.shape[-1])
    for rows in _slices(len(passed), widest * passed.shape[1], choices.scratch):
        row_bias = bias if bias is None or bias.dim() == 1 else bias[rows]
        passed[rows] = _above_attention(with_bias(passed[rows], row_bias), weights, choices.gate)
    return passed


def head_vectors(vectors: Vectors, trace: Trace, head: HeadWeights) -> Float[Tensor, "sources classes"]:
    """What each source contributes to the logits, from the vectors of the rows that the prediction is made from."""
    carried = _normed_vectors(vectors, head.norm)
    carried = torch.einsum("r,rsd->sd", trace.rows[trace.rows != 0], carried)[None]
    for stage in head.stages:
        if isinstance(stage, Affine):
            carried = with_bias(carried @ stage.weight.T, stage.bias)
        elif isinstance(stage, Norm):
            carried = _normed_vectors(carried, stage)
        else:
            carried = carried * slope(stage, carried.sum(1, keepdim=True))
    return carried[0]


def with_bias(vectors: Vectors, bias: Float[Tensor, "... hidden"] | None) -> Vectors:
    """The vectors with a bias b distributed among the sources k, by weights |<x_k, b>| / sum_k |<x_k, b>| (absdot).

    `bias` may be one for all rows or one for each. If every product is zero, the sources that have a vector share it
    equally, so that nothing is lost.
    """
    if bias is None:
        return vectors
    spread = bias.expand(len(vectors), -1)
    shares = (vectors @ spread[:, :, None])[:, :, 0].abs()
    none = shares.sum(1, keepdim=True) == 0
    if none.any():
        shares = torch.where(none, vectors.ne(0).any(-1).to(shares), shares)
        shares = torch.where(shares.sum(1, keepdim=True) == 0, torch.ones_like(shares), shares)
    return torch.baddbmm(vectors, (shares / shares.sum(1, keepdim=True))[:, :, None], spread[:, None])


def slope(activation: Activation, x: Float[Tensor, "... hidden"]) -> Float[Tensor, "... hidden"]:
    """activation(x) / x: the slope of the line from the origin, 0 where x is 0."""
    return torch.where(x == 0, torch.zeros_like(x), activation(x) / torch.where(x == 0, torch.ones_like(x), x))


def mixed_vectors(
    vectors: Float[Tensor, "tokens sources hidden"],
    attention: Float[Tensor, "heads rows tokens"],
    value: Affine,
    output: Affine,
    scratch: int,
) -> Vectors:
    """sum_h sum_j A^h_ij W_O^h W_V^h x_j<-k for every row i and source k, without biases; `value` is W_V, `output` W_O.

    All heads at once if they fit into memory; otherwise as many as fit, or one head with as many sources as fit.
    """
    heads, rows, tokens = attention.shape
    features = len(value.weight) // heads
    sources, hidden = vectors.shape[1:]
    mixed = vectors.new_zeros(rows, sources, hidden)
    per_head = 2 * (tokens + rows) * features
    for some in _slices(heads, per_head * sources, scratch):
        count = len(range(heads)[some])
        span_of_heads = slice(some.start * features, (some.start + count) * features)
        for span in _slices(sources, count * per_head + rows * hidden, scratch):
            values = _by_head(vectors[:, span] @ value.weight[span_of_heads].T, count)
            # (heads, rows, tokens) times (heads, tokens, sources and features).
            gathered = attention[some] @ values.permute(2, 0, 1, 3).flatten(2)
            per_row = gathered.reshape(*gathered.shape[:-1], -1, features).permute(1, 2, 0, 3).flatten(2)
            mixed[:, span] += per_row @ output.weight[:, span_of_heads].T
    return mixed


def _attention_bias(attention: Float[Tensor, "heads rows key"], weights: LayerWeights) -> Tensor | None:
    """W_O b_V + b_O; each head's b_V counts by the sum of its row, which an attention sink makes less than 1."""
    if weights.value.bias is None:
        return weights.output.bias
    by_head = _by_head(weights.value.bias, len(attention))
    return weights.output((attention.sum(-1).T[:, :, None] * by_head).flatten(1))


def _above_attention(vectors: Vectors, weights: LayerWeights, gate: Gate) -> Vectors:
    """Norms and the feed-forward layer with its residual."""
    if weights.norm_first:
        return vectors + _fed_forward(_normed_vectors(vectors, weights.mlp_norm), weights.feed_forward, gate)
    vectors = _normed_vectors(vectors, weights.attention_norm)
    return _normed_vectors(vectors + _fed_forward(vectors, weights.feed_forward, gate), weights.mlp_norm)


def _fed_forward(vectors: Vectors, mlp: FeedForward, gate: Gate) -> Vectors:
    inner = with_bias(vectors @ mlp.inner.weight.T, mlp.inner.bias)
    if mlp.gate is None:
        return with_bias(
            (inner * slope(mlp.activation, inner.sum(1, keepdim=True))) @ mlp.outer.weight.T, mlp.outer.bias
        )
    if gate == "constant":
        product = inner * mlp.activation(mlp.gate(vectors.sum(1, keepdim=True)))
    else:
        steered = with_bias(vectors @ mlp.gate.weight.T, mlp.gate.bias)
        whole = steered.sum(1, keepdim=True)
        product = inner * mlp.activation(whole)
        product += steered * (slope(mlp.activation, whole) * inner.sum(1, keepdim=True))
        product /= 2
    return with_bias(product @ mlp.outer.weight.T, mlp.outer.bias)


def _normed_vectors(vectors: Vectors, norm: Norm | None) -> Vectors:
    if norm is None:
        return vectors
    return with_bias(norm.linear(vectors, norm.sigma(vectors.sum(1, keepdim=True))), norm.bias)


def _normed(state: Float[Tensor, "tokens hidden"], norm: Norm | None) -> Float[Tensor, "tokens hidden"]:
    return state if norm is None else norm(state)


def _slices(count: int, size: int, scratch: int) -> Iterator[slice]:
    """Slices of `count` items of `size` numbers each that fit into the scratch memory; at least one item."""
    step = max(1, scratch // max(1, size))
    for start in range(0, count, step):
        yield slice(start, min(start + step, count))
