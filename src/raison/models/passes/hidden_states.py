"""Hidden states of texts, averaged over the layers."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from raison.core.capabilities.hidden_states import HiddenStates
from raison.core.errors import UnsupportedError
from raison.core.inputs.encoding import Encoding
from raison.models.passes.batching import TokenBudget, run_grouped
from raison.models.passes.network import Network
from raison.models.passes.token_batch import TokenBatch
from raison.models.stack.hooks import hooked
from raison.models.stack.layers import layer_stack

LayerStates = tuple[Tensor, ...]
"""The output of each layer, (rows, tokens, hidden)."""


class LayerMeans(HiddenStates):
    """The hidden states of one network."""

    def __init__(self, network: Network, budget: TokenBudget) -> None:
        self._network = network
        self._budget = budget

    def hidden_states(self, encoding: Encoding) -> list[Float[Tensor, "_tokens hidden"]]:
        with self._network.quiet():
            return hidden_states(encoding, self._budget, self.layers)

    def layers(self, batch: TokenBatch) -> LayerStates:
        """The output of each layer for a batch; in an encoder-decoder, of the encoder's layers."""
        core = self._network.core
        reader = core.get_encoder() if core.config.is_encoder_decoder else core.base_model
        return layer_outputs(core, reader, self._network.inputs(batch))


def hidden_states(
    encoding: Encoding, budget: TokenBudget, run: Callable[[TokenBatch], LayerStates]
) -> list[Float[Tensor, "_tokens hidden"]]:
    """See HiddenStates.hidden_states; `run` gives the hidden states of one batch.

    The last hidden state is the one after the final norm, if there is one.
    """
    lengths = encoding.attention_mask.sum(1)
    means: dict[int, Tensor] = {}

    def averaged(rows: list[int]) -> Tensor:
        width = int(lengths[rows].max())
        layers = run(TokenBatch(encoding.input_ids[rows, :width], encoding.type_ids[rows, :width], lengths[rows]))
        total = torch.zeros_like(layers[0], dtype=torch.float32)
        for layer in layers:
            total += layer.to(total)
        return (total / len(layers)).cpu()

    with torch.no_grad():
        for rows, states in run_grouped(budget, encoding.lengths, averaged):
            means.update((row, states[i, : lengths[row]].clone()) for i, row in enumerate(rows))
    return [means[row] for row in range(len(encoding))]


def layer_outputs(model: nn.Module, reader: nn.Module, inputs: dict[str, Any]) -> LayerStates:
    """The output of each layer in one pass of `reader`, the part of the model that encodes.

    The last one is the model's `last_hidden_state`. If the layers are not one list of modules, the model is asked for
    its hidden states; transformers then leaves its own hooks on it.
    """
    try:
        layer_stack(model)
    except UnsupportedError:
        states: LayerStates = reader(**inputs, output_hidden_states=True).hidden_states
        return states[1:]
    with watched_layers(model) as outputs:
        last = reader(**inputs)[0]
    return (*outputs[:-1], last)


@contextmanager
def watched_layers(model: nn.Module) -> Iterator[list[Tensor]]:
    """The output of each layer in the next pass inside the context, in order, in the graph. Undone on leaving.

    Raises UnsupportedError if the layers are not one list of modules.
    """
    layers: list[Tensor] = []

    def keep(_module: nn.Module, _args: object, output: Any) -> None:
        layers.append(output[0] if isinstance(output, tuple) else output)

    with hooked(layer_stack(model), after=keep):
        yield layers
