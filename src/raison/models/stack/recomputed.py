"""A pass that keeps only the states between a model's layers, and computes each layer again in the backward pass.

Only one layer at a time keeps its intermediate results. Everything happens in the calling thread, in which the hooks,
the tap and the rules of the pass are open.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from raison.core.dims import Embeddings
from raison.core.errors import UnsupportedError
from raison.models.stack.hooks import Args, Keywords, hooked
from raison.models.stack.layers import LayerCall, layer_stack, replaced_output


class NotInARowError(BaseException):
    """A layer's input is not exactly the output of the layer before it.

    A BaseException, for the same reason as `layers.ReachedError`.
    """


@dataclass(slots=True)
class Recomputed:
    """A pass through a stack of layers, while it is made and when gradients go back."""

    layers: Sequence[nn.Module]
    calls: list[LayerCall] = field(default_factory=list)
    states: list[Tensor] = field(default_factory=list)
    """The input of the first layer, with its graph, and the output of each layer, without one."""

    def gradients(self, scalar: Tensor, embeds: Embeddings) -> Embeddings:
        """The gradient of a scalar computed from the last layer's states, with respect to the embeddings given to the
        pass."""
        slopes, direct = torch.autograd.grad(scalar, (self.states[-1], embeds), allow_unused=True)
        while self.calls:
            call, layer = self.calls.pop(), self.layers[len(self.calls)]
            hidden = call.hidden.detach().requires_grad_()
            with torch.enable_grad():
                output = call.run(layer, hidden)
            (slopes,) = torch.autograd.grad(output, hidden, slopes)
        (gradient,) = torch.autograd.grad(self.states[0], embeds, slopes)
        return gradient if direct is None else gradient + direct

    def enter(self, layer: nn.Module, args: Args, kwargs: Keywords) -> None:
        """A layer is called: from the first one on, no graph is made."""
        call = LayerCall(args, kwargs)
        if not self.calls:
            self.states.append(call.hidden)
            torch.set_grad_enabled(False)
        others = [one for one in tree_leaves((args, kwargs)) if one is not call.hidden]
        carried = any(isinstance(one, Tensor) and one.requires_grad for one in others)
        expected = self.layers[len(self.calls)] if len(self.calls) < len(self.layers) else None
        if carried or layer is not expected or call.hidden is not self.states[-1]:
            raise NotInARowError
        self.calls.append(call)

    def leave(self, layer: nn.Module, args: Args, output: Any) -> Any:
        """A layer has run: after the last one, a new graph starts."""
        hidden: Tensor = output[0] if isinstance(output, tuple) else output
        self.states[1:] = [hidden]
        if len(self.calls) < len(self.layers):
            return None
        torch.set_grad_enabled(True)
        self.states[1:] = [hidden.detach().requires_grad_()]
        return replaced_output(self.states[1])(layer, args, output)


@contextmanager
def recomputed(layers: Sequence[nn.Module]) -> Iterator[Recomputed]:
    """Inside, one pass through the layers keeps no graph of them; `Recomputed.gradients` makes its backward pass.

    The pass raises NotInARowError if the layers do not form one chain.
    """
    states = Recomputed(layers)
    with torch.enable_grad(), hooked(dict.fromkeys(layers), before=states.enter, after=states.leave):
        yield states


def stack_of(core: nn.Module) -> list[nn.Module]:
    """The layers of a model; none unless they are one list, in which every module is run once."""
    try:
        layers = layer_stack(core)
    except UnsupportedError:
        return []
    return layers if len(set(layers)) == len(layers) else []
