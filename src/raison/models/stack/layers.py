"""The layers of a transformer as modules that can be called again: with a batch in place of one text, or on one row."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from raison.core.errors import UnsupportedError
from raison.models.stack.hooks import hooked
from raison.models.stack.tap import attention_modules

StateChange = Callable[[Tensor], Tensor]


class ReachedError(BaseException):
    """Leaves a layer once its attention is known.

    A BaseException: for an Exception, torch looks through the layer's hooks, which other threads set and remove.
    """

    def __init__(self, output: Tensor) -> None:
        super().__init__()
        self.output = output


@dataclass(frozen=True, slots=True)
class LayerCall:
    """What a layer was called with; the hidden states are the first argument."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @property
    def hidden(self) -> Float[Tensor, "batch tokens hidden"]:
        """The hidden states that entered the layer."""
        states: Tensor = self.args[0] if self.args else self.kwargs["hidden_states"]
        return states

    def expanded(self, batch: int) -> "LayerCall":
        """The same for a batch of equal texts, without a copy; for a call with one."""

        def expand(tensor: Tensor) -> Tensor:
            # One number may be of the text, as a language is, or of its only token.
            of_text = tensor.dim() > 1 or self.hidden.shape[1] > 1
            wide = tensor.shape[:1] == (1,) and of_text and not self._tells_distances(tensor)
            return tensor.expand(batch, *tensor.shape[1:]) if wide else tensor

        return self._mapped(expand)

    def of_row(self, row: int) -> "LayerCall":
        """The same for one position alone."""
        texts, tokens = self.hidden.shape[:2]

        def cut(tensor: Tensor) -> Tensor:
            if tensor.dim() == 4:
                # A mask (batch, heads, query, key): a single position sees itself.
                return tensor[..., row : row + 1, row : row + 1]
            if self._tells_distances(tensor):
                return tensor[:, row : row + 1, row : row + 1]
            if tensor.dim() > 1 and tensor.shape[1] == tokens and tensor.shape[0] in (1, texts):
                # Contiguous: otherwise a linear layer would multiply row by row.
                return tensor[:, row : row + 1].contiguous()
            # If there are as many texts as tokens, one number per text must not be mistaken for one per token.
            per_token = tuple(tensor.shape) == (tokens,) and len(self.hidden) != tokens
            return tensor[row : row + 1] if per_token else tensor

        return self._mapped(cut)

    def run(self, layer: nn.Module, hidden: Float[Tensor, "batch tokens hidden"]) -> Tensor:
        """The layer's output for other hidden states than those that it was called with."""
        args, kwargs = (hidden, *self.args[1:]), dict(self.kwargs)
        if not self.args:
            args, kwargs = (), kwargs | {"hidden_states": hidden}
        output = layer(*args, **kwargs)
        states: Tensor = output[0] if isinstance(output, tuple) else output
        return states

    def _tells_distances(self, tensor: Tensor) -> bool:
        """Whether it holds distances between tokens, (1, query, key), the same for every text."""
        tokens = self.hidden.shape[1]
        return not tensor.is_floating_point() and tuple(tensor.shape) == (1, tokens, tokens)

    def _mapped(self, change: StateChange) -> "LayerCall":
        mapped = {name: _map(value, change) for name, value in self.kwargs.items()}
        return LayerCall(tuple(_map(value, change) for value in self.args), mapped)


def layer_stack(model: nn.Module) -> list[nn.Module]:
    """The layers of a model, one for each of its attention modules, in the order of computation.

    A module that is run several times is listed as often. Raises UnsupportedError unless they are one list of modules
    with one attention module in each.
    """
    passes = [id(module) for module in attention_modules(model)]
    attention = list(dict.fromkeys(passes))
    for stack in model.modules():
        if not isinstance(stack, nn.ModuleList) or len(stack) != len(attention):
            continue
        inside = [[id(module) for module in layer.modules() if id(module) in attention] for layer in stack]
        if inside == [[module] for module in attention]:
            return [stack[attention.index(number)] for number in passes]
    raise UnsupportedError(
        f"cannot re-run single layers of {type(model).__name__}",
        ["its layers are not one list with an attention module in each"],
    )


@contextmanager
def kept_calls(stack: Sequence[nn.Module], lowest: int = 0) -> Iterator[dict[int, LayerCall]]:
    """The latest call of each layer of a stack inside the context, by the layers' numbers.

    Calls of layers below `lowest` are not kept. A model runs a module as often as the stack lists it.
    """
    calls: dict[int, LayerCall] = {}
    numbers: dict[nn.Module, list[int]] = {}
    for number, layer in enumerate(stack):
        numbers.setdefault(layer, []).append(number)
    made = dict.fromkeys(numbers, 0)

    def keep(layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        layer_numbers = numbers[layer]
        number = layer_numbers[made[layer] % len(layer_numbers)]
        made[layer] += 1
        if number >= lowest:
            calls[number] = LayerCall(args, kwargs)

    with hooked([layer for layer, layer_numbers in numbers.items() if layer_numbers[-1] >= lowest], before=keep):
        yield calls


def replaced_output(hidden: Tensor) -> Callable[[nn.Module, Any, Any], Any]:
    """An action after a layer's call that replaces its output by other hidden states."""

    def replace(_module: nn.Module, _args: Any, output: Any) -> Any:
        return (hidden, *output[1:]) if isinstance(output, tuple) else hidden

    return replace


def _map(value: Any, change: StateChange) -> Any:
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, tuple):
        return tuple(_map(part, change) for part in value)
    return value
