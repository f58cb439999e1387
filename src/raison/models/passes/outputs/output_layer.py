"""A language model's logits over its vocabulary, from its last hidden states."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import methodcaller
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from raison.core.errors import UnsupportedError

_MATRIX = methodcaller("get_output_embeddings")
"""Finds the output matrix of a language model."""
_SCALES = (1.0, 30.0, 1000.0)
"""Multiples of states on which a model is compared with its output matrix: a cap changes large logits only."""


@dataclass(frozen=True, slots=True, eq=False)
class FoundHead:
    """The module that gives a model's logits, found at every use: a caller may replace it."""

    core: PreTrainedModel
    find: Callable[[PreTrainedModel], nn.Module]

    @property
    def module(self) -> nn.Module:
        """The model's present one."""
        return self.find(self.core)

    def of(self, core: PreTrainedModel) -> "FoundHead":
        """The same part of another model."""
        return replace(self, core=core)


def output_layer(core: PreTrainedModel, states: Float[Tensor, "reads hidden"]) -> FoundHead:
    """What gives a model's logits: its output matrix where that alone does, otherwise an OutputLayer.

    `states` are last hidden states of any text; both are compared on multiples of them, bit by bit. Callers check the
    result against the model's own logits. Raises UnsupportedError for a model whose layers are not a part of it.
    """
    if not any(child is layer for child in core.children() for layer in _layers(core)):
        raise UnsupportedError(
            f"cannot explain outputs of {type(core).__name__}",
            ["its layers are not a part of it that can run alone"],
            "Use a model of another family, such as Llama, Qwen, Gemma, Granite, Mistral, GPT-2, T5 or BART.",
        )
    matrix, own = FoundHead(core, _MATRIX), FoundHead(core, OutputLayer)
    tried = torch.cat([states * scale for scale in _SCALES])
    try:
        same = torch.equal(own.module(tried).float(), matrix.module(tried).float())
    except (RuntimeError, TypeError, ValueError, AttributeError, LookupError):
        # A model that cannot be given states (own), or a matrix of another width.
        return matrix if _takes(matrix.module, tried) else own
    return matrix if same else own


class OutputLayer(nn.Module):
    """Everything that a model does after its layers: its own forward function, with states in place of its layers.

    Granite and Cohere multiply their logits, Gemma caps them, T5 scales its states, BART has a bias outside its matrix,
    and ModernBERT's decoder has another layer and a norm before it. No weights are copied.
    """

    def __init__(self, core: PreTrainedModel) -> None:
        super().__init__()
        # In a list, so that the model is not a module of this one.
        self._core = [core]

    def forward(self, states: Float[Tensor, "*rows hidden"]) -> Float[Tensor, "*rows vocabulary"]:
        """The logits of all tokens."""
        rows = states.reshape(-1, 1, states.shape[-1])
        core = self._core[0]
        given: dict[str, Any] = {"inputs_embeds": rows}
        if core.config.is_encoder_decoder:
            given = {"decoder_inputs_embeds": rows, "encoder_outputs": BaseModelOutput(last_hidden_state=rows)}
        logits: Tensor = _without_layers(core, rows)(**given, use_cache=False).logits
        return logits.reshape(*states.shape[:-1], -1)


def token_logits(
    head: nn.Module, states: Float[Tensor, "*rows hidden"], tokens: Sequence[int]
) -> Float[Tensor, "*rows tokens"]:
    """The logits of some tokens, from their rows of an output matrix where they can be taken alone."""
    if type(head) is not nn.Linear:
        # Adapters and quantised matrices must compute their rows themselves.
        logits: Tensor = head(states)[..., list(tokens)]
        return logits
    bias = None if head.bias is None else head.bias[list(tokens)]
    return nn.functional.linear(states, head.weight[list(tokens)], bias)


class _Given(BaseModelOutput):
    """States as the output of layers; a field that the model asks for and that is not here is None."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


class _NoLayers(nn.Module):
    """In place of a transformer: returns states that were given beforehand."""

    def __init__(self, states: Tensor) -> None:
        super().__init__()
        self._states = states

    def forward(self, *_args: Any, **_settings: Any) -> _Given:
        return _Given(last_hidden_state=self._states)


def _without_layers(core: PreTrainedModel, states: Tensor) -> nn.Module:
    """A model of the same class and with the same parts, except that its layers return these states.

    It has the class's forward function: the model's own may have been replaced (device_map), which concerns its inputs.
    """
    own = ("forward", "_old_forward", "_hf_hook", "_compiled_call_impl")
    shell: nn.Module = object.__new__(type(core))
    vars(shell).update({name: value for name, value in vars(core).items() if name not in own})
    layers = _layers(core)
    vars(shell)["_modules"] = {
        name: _NoLayers(states) if any(child is layer for layer in layers) else child
        for name, child in core._modules.items()
    }
    return shell


def _layers(core: PreTrainedModel) -> list[nn.Module]:
    """What runs the layers: one part of the model, or an encoder and a decoder."""
    return [core.get_encoder(), core.get_decoder()] if core.base_model is core else [core.base_model]


def _takes(module: nn.Module, states: Tensor) -> bool:
    try:
        module(states)
    except (RuntimeError, TypeError, ValueError):
        return False
    return True
