"""A transformers model taken apart: what its layers computed for a text, and the matrices they computed it with.

The model's family gives the places of the parts. Nothing is patched: hooks and the attention tap record one pass and
are undone, and matrices are read from plain modules, or found by calling modules that wrap one (adapters, quantised
weights). The first text after any change of the model is used to compare layers rebuilt from these parts with its own.
"""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.activations import ACT2FN
from transformers.pytorch_utils import Conv1D

from raison.core.capabilities.decomposition import Anatomy
from raison.core.dims import Logits
from raison.core.errors import UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.core.internals.anatomy import Affine, FeedForward, HeadWeights, LayerWeights, Norm, Stage, Trace
from raison.models.families import Parts, ProjectionName, family_of
from raison.models.passes.outputs.heads import ClassHead, Head
from raison.models.passes.outputs.output_layer import OutputLayer
from raison.models.passes.outputs.place_heads import TagHead, WordHead
from raison.models.passes.outputs.readout import HeadReadout, Readout, WordReadout
from raison.models.passes.outputs.vectors import VectorHead
from raison.models.passes.rerun import Rows
from raison.models.stack.eval_mode import evaluating
from raison.models.stack.fingerprint import fingerprint
from raison.models.stack.hooks import hooked
from raison.models.stack.layers import kept_calls, layer_stack
from raison.models.stack.structure import has_unseen_state
from raison.models.stack.tap import Tap, tap
from raison.numerics.attention.decomposition import head_output, layer_output

PredictTexts = Callable[[Encoding], Logits]
_TOLERANCE, _HALF_TOLERANCE = 1e-3, 0.1
"""Relative, for a layer: RMS norms compute in single precision whatever the model's own is."""
_WAY_OUT = "Use a method that needs no decomposition, such as attention_rollout or integrated_gradients."


def can_take_apart(core: PreTrainedModel) -> bool:
    """Whether the model's family gives the places of the parts, and its layers can be found."""
    try:
        return family_of(core).parts is not None and len(layer_stack(core)) > 0
    except UnsupportedError:
        return False


class ModelAnatomy(Anatomy):
    """The layers of one model, as its family names their parts."""

    def __init__(
        self, core: PreTrainedModel, readout: Readout | None, head: Head, predict: PredictTexts, rows: Rows
    ) -> None:
        """`predict` gives the logits of an encoding, `rows` its prediction rows."""
        parts = family_of(core).parts
        if parts is None:
            raise UnsupportedError(
                f"cannot decompose {type(core).__name__}",
                [f"the parts of a layer of model type '{core.config.model_type}' are not known"],
                _WAY_OUT,
            )
        self._core = core
        self.layers = len(layer_stack(core))
        self._outlet = _Outlet(core, parts, readout, head)
        self._predict, self._rows = predict, rows
        self._compared: tuple[Hashable, ...] | None = None

    def traces(self, encoding: Encoding) -> list[Trace]:
        rows, stack = self._rows(encoding), layer_stack(self._core)
        last: list[Tensor] = []
        with (
            kept_calls(stack) as calls,
            hooked(stack[-1:], after=_keep_output(last)),
            tap(self._core, ("probabilities",)) as records,
            torch.no_grad(),
        ):
            logits = self._predict(encoding)
        # Label words of several tokens are read in several passes, of which the text's own is the last.
        states = [*(calls[number].hidden for number in range(self.layers)), last[-1]]
        traces = [_trace(states, records, rows[text, :length], text) for text, length in enumerate(encoding.lengths)]
        # Weights and hooks may have changed since.
        if self._compared != (now := fingerprint(self._core)) or has_unseen_state(self._core):
            self._compare(traces[0], logits[0])
            self._compared = now
        return traces

    def weights(self, layer: int) -> LayerWeights:
        # Modules that wrap a matrix are called: a caller's model may be training, with dropout inside them.
        with torch.no_grad(), evaluating(self._core):
            return self._weights(layer_stack(self._core)[layer])

    def head(self) -> HeadWeights:
        with torch.no_grad(), evaluating(self._core):
            return self._outlet.weights()

    def _weights(self, layer: nn.Module) -> LayerWeights:
        parts, width = self._outlet.parts, self._core.config.hidden_size

        def part(piece: ProjectionName, inputs: int) -> Affine:
            return _piece(_part_of(layer, piece.name), piece, inputs, self._outlet.like)

        mlp_norm = _norm(_part_of(layer, parts.mlp_norm), self._outlet.like)
        assert mlp_norm is not None, "a feed-forward layer without a norm"
        inner = part(parts.inner, width)
        heads: int = self._core.config.num_attention_heads
        value = _value(layer, parts.value, part(replace(parts.value, part=0, of=1), width), heads)
        features = _head_size(self._core, value, heads)
        return LayerWeights(
            parts.norm_first,
            _norm(_part_of(layer, parts.attention_norm), self._outlet.like),
            _repeated(value, heads, features),
            part(parts.output, heads * features),
            mlp_norm,
            FeedForward(
                inner,
                part(parts.outer, len(inner.weight)),
                _part_of(layer, parts.activation),
                None if parts.gate is None else part(parts.gate, width),
            ),
        )

    def _compare(self, trace: Trace, logits: Float[Tensor, " classes"]) -> None:
        """Raises UnsupportedError if the parts do not account for all that the model's layers compute."""
        tolerance = _HALF_TOLERANCE if self._outlet.like.dtype.itemsize < 4 else _TOLERANCE
        wrong = []
        for number in range(self.layers):
            recomputed = layer_output(trace, number, self.weights(number))
            if not _close(recomputed, trace.states[number + 1], tolerance):
                wrong.append(f"layer {number} gives different states from its parts")
        if not wrong and self._outlet.reason is None:
            recomputed = head_output(trace, self.head())
            if not _close(recomputed, logits, tolerance):
                wrong.append("the head gives different logits from its parts")
        if wrong:
            raise UnsupportedError(f"cannot decompose {type(self._core).__name__}", wrong, _WAY_OUT)


class _Outlet:
    """The part after the last layer."""

    def __init__(self, core: PreTrainedModel, parts: Parts, readout: Readout | None, head: Head) -> None:
        self.parts = parts
        self.reason = _no_chain(readout, head)
        """Why the logits are not a chain of linear maps, norms and activations; None if they are."""
        self._core = core
        self._readout = readout
        self._head = head

    @property
    def like(self) -> Tensor:
        """A tensor with the model's device and dtype."""
        # A quantised matrix may have whole numbers.
        return next(p for p in self._core.parameters() if p.is_floating_point())

    def weights(self) -> HeadWeights:
        """See Anatomy.head."""
        if self.reason is not None:
            raise UnsupportedError("cannot decompose the logits", [self.reason], _WAY_OUT)
        name = self.parts.final_norm
        norm = None if name is None else _norm(_part_of(self._core.base_model, name), self.like)
        stages = self._named() if self._readout is None else [_affine_of_readout(self._readout, self._width, self.like)]
        return HeadWeights(norm, tuple(stages))

    @property
    def _width(self) -> int:
        width: int = self._core.config.hidden_size
        return width

    def _named(self) -> list[Stage]:
        stages: list[Stage] = []
        width = self._width
        for name in self.parts.head:
            if name in ACT2FN:
                stages.append(ACT2FN[name])
                continue
            module = _part_of(self._core, name)
            if _is_norm(module):
                stages.extend(norm for norm in [_norm(module, self.like)] if norm is not None)
            elif any(True for _ in module.parameters()):
                stages.append(_piece(module, ProjectionName(name), width, self.like))
                width = len(stages[-1].weight)  # type: ignore[union-attr]
            else:
                stages.append(module)
        return stages


def _no_chain(readout: Readout | None, head: Head) -> str | None:
    if isinstance(head, TagHead | WordHead):
        return "its prediction is made at positions that differ from text to text, not by one linear head"
    if isinstance(head, VectorHead):
        return "a similarity is not a linear function of hidden states"
    if not isinstance(head, ClassHead):
        return "the model answers with a part of the text, and the other answers together have no single logit"
    if isinstance(readout, WordReadout):
        if isinstance(readout.head.module, OutputLayer):
            return "its logits are more than an output matrix applied to its last states"
        several = any(len(ids) > 1 for ids in readout.label_ids)
        return "labels of several tokens are read at several positions" if several else None
    if readout is not None and not isinstance(readout, HeadReadout):
        return "all other tokens of the vocabulary together are one class, which has no linear logit"
    return None


def _keep_output(outputs: list[Tensor]) -> Callable[[nn.Module, Any, Any], None]:
    def keep(_module: nn.Module, _args: Any, output: Any) -> None:
        outputs.append(output[0] if isinstance(output, tuple) else output)

    return keep


def _trace(states: Sequence[Tensor], records: Tap, rows: Tensor, text: int) -> Trace:
    length = len(rows)
    dtype = torch.promote_types(states[0].dtype, torch.float32)
    return Trace(
        tuple(state[text, :length].to(dtype) for state in states),
        tuple(records.probabilities[k][text, :, :length, :length].to(dtype) for k in sorted(records.probabilities)),
        rows.to(states[0].device, dtype),
        text,
        torch.arange(length),
    )


def _value(layer: nn.Module, piece: ProjectionName, whole: Affine, heads: int) -> Affine:
    """The values' part of the matrix that makes them, and their bias."""
    groups = heads if piece.by_head else 1
    weight = whole.weight.unflatten(0, (groups, piece.of, -1))[:, piece.part].flatten(0, 1)
    bias = whole.bias
    if piece.bias is not None:
        bias = _part_of(layer, piece.bias).detach().to(weight)
    elif bias is not None:
        bias = bias.unflatten(0, (groups, piece.of, -1))[:, piece.part].flatten()
    return Affine(weight, bias)


def _part_of(module: nn.Module, name: str) -> Any:
    """A module's part by its name. Raises UnsupportedError if it has none: what the family has there was replaced."""
    part: Any = module
    for step in name.split("."):
        if not hasattr(part, step):
            reason = f"{name} of its family is missing: a {type(part).__name__} has no {step}"
            raise UnsupportedError(f"cannot decompose {type(module).__name__}", [reason], _WAY_OUT)
        part = getattr(part, step)
    return part


def _piece(module: nn.Module, piece: ProjectionName, inputs: int, like: Tensor) -> Affine:
    """A module's matrix and bias, in at least single precision; `inputs` is how many numbers it takes."""
    # A weight of a special class (packed in eight bits) may support nothing but multiplication.
    packed = type(module._parameters.get("weight")) is not nn.Parameter
    if type(module) is nn.Linear and not packed:
        weight: Tensor = module.weight
        bias: Tensor | None = module.bias
    elif type(module) is Conv1D and not packed:
        weight, bias = module.weight.T, module.bias
    else:
        affine = _probed(module, inputs, like)
        weight, bias = affine.weight, affine.bias
    size = len(weight) // piece.of
    rows = slice(piece.part * size, (piece.part + 1) * size)
    dtype = torch.promote_types(like.dtype, torch.float32)
    return Affine(weight[rows].detach().to(dtype), None if bias is None else bias[rows].detach().to(dtype))


def _probed(function: Callable[[Tensor], Tensor], inputs: int, like: Tensor) -> Affine:
    """The matrix and the bias of an affine function, from its values at the unit vectors and at zero."""
    dtype = torch.promote_types(like.dtype, torch.float32)
    eye = torch.eye(inputs, dtype=like.dtype, device=like.device)
    bias = function(eye.new_zeros(1, inputs)).to(dtype)
    return Affine((function(eye).to(dtype) - bias).T.contiguous(), bias[0])


def _affine_of_readout(readout: Readout, inputs: int, like: Tensor) -> Affine:
    if isinstance(readout, HeadReadout):
        return _piece(readout.head.module, ProjectionName("head"), inputs, like)
    return _probed(lambda states: readout.logits([states[:, None]]), inputs, like)


def _head_size(core: PreTrainedModel, value: Affine, heads: int) -> int:
    """Features of one head: from the config if they are not the hidden size divided by the number of heads."""
    config = core.config.to_dict()
    size: int = config.get("head_dim") or config.get("d_kv") or core.config.hidden_size // heads
    if len(value.weight) % size:
        raise UnsupportedError(
            f"cannot decompose {type(core).__name__}",
            [f"{len(value.weight)} values are not heads of {size} features"],
            _WAY_OUT,
        )
    return size


def _repeated(value: Affine, heads: int, features: int) -> Affine:
    """The values for every query head, if several of these share one head of keys and values."""
    value_heads = len(value.weight) // features
    if value_heads == heads:
        return value
    times = heads // value_heads
    rows = torch.arange(value_heads * features, device=value.weight.device).reshape(value_heads, features)
    rows = rows.repeat_interleave(times, 0).flatten()
    return Affine(value.weight[rows], None if value.bias is None else value.bias[rows])


def _is_norm(module: nn.Module) -> bool:
    return isinstance(module, nn.LayerNorm) or "variance_epsilon" in vars(module)


def _norm(module: nn.Module, like: Tensor) -> Norm | None:
    """A layer norm or an RMS norm; None if there is none. Raises UnsupportedError for other modules."""
    if isinstance(module, nn.Identity):
        return None
    if not _is_norm(module):
        raise UnsupportedError("cannot decompose the model", [f"{type(module).__name__} is not a known norm"], _WAY_OUT)
    dtype = torch.promote_types(like.dtype, torch.float32)
    gain: Tensor = module.weight.detach().to(dtype)  # type: ignore[operator]
    parameter = module._parameters.get("bias")
    bias = None if parameter is None else parameter.detach().to(dtype)
    if isinstance(module, nn.LayerNorm):
        return Norm(gain, bias, module.eps, centred=True)
    # A custom layer norm (DeBERTa) has a bias, and an RMS norm has none.
    return Norm(gain, bias, vars(module)["variance_epsilon"], centred=bias is not None)


def _close(recomputed: Tensor, plain: Tensor, tolerance: float) -> bool:
    plain = plain.to(recomputed)
    return bool((recomputed - plain).norm() <= tolerance * plain.norm().clamp_min(1e-6))
