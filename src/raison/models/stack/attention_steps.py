"""The steps of one call of an attention module, recognised by its torch calls.

Every eager attention of transformers computes matmul(query, key), softmax, dropout and matmul(probabilities, value), in
this order. Other calls between them are left alone.
"""

import inspect
from collections.abc import Callable
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from raison.core.errors import UnsupportedError

AttentionStep = Literal["query", "key", "value", "scores", "probabilities", "output"]
STEPS: tuple[AttentionStep, ...] = get_args(AttentionStep)
Visit = Callable[[AttentionStep, Tensor], Tensor]
"""(step, tensor with an axis for the heads) -> the tensor to go on with."""

_MATMUL = frozenset({torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm})
_SOFTMAX = frozenset({nn.functional.softmax, torch.softmax, Tensor.softmax})
_DROPOUT = frozenset({nn.functional.dropout})
_ORDER = (_MATMUL, _SOFTMAX, _DROPOUT, _MATMUL)


def writes_out(module: nn.Module) -> bool:
    """Whether the module's own forward multiplies and takes a softmax, and says how many heads it has."""
    code = getattr(inspect.unwrap(type(module).forward), "__code__", None)  # compiled modules have none
    names = () if code is None else code.co_names
    return "softmax" in names and ("matmul" in names or "bmm" in names) and "num_attention_heads" in vars(module)


class Steps(TorchFunctionMode):
    """Visits the steps of one call; a mode for code that calls nothing else meanwhile."""

    def __init__(self, visit: Visit, watched: frozenset[AttentionStep], heads: int | None) -> None:
        """Only `watched` steps are visited. `heads` is the number of heads if batch and heads are one axis."""
        super().__init__()
        self._visit = visit
        self._watched = watched
        self._heads = heads
        self._left = list(_ORDER)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        return self.call(func, args, kwargs or {})

    def call(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Make a torch call, and visit what enters or leaves it if it is one of the steps."""
        if not self._left or func not in self._left[0]:
            return func(*args, **kwargs)
        self._left.pop(0)
        output = func(*self._arguments(*args[:2]), *args[2:], **kwargs)
        return output if self._left else self._seen("output", output)

    def check(self, module: nn.Module) -> None:
        """Raises UnsupportedError if the call did not make exactly these steps."""
        if self._left:
            raise UnsupportedError(
                f"cannot read the attention of {type(module).__name__}",
                ["its eager attention is not matmul, softmax, dropout, matmul"],
                "Use a method that does not read attention, such as integrated_gradients.",
            )

    def _arguments(self, first: Tensor, second: Any = None) -> tuple[Any, ...]:
        """The arguments of the call that was just taken off the list."""
        left = len(self._left)
        if left == 3:
            return self._seen("query", first), self._turned("key", second)
        if left == 0:
            return first, self._seen("value", second)
        visited = self._seen("scores" if left == 2 else "probabilities", first)
        return (visited,) if second is None else (visited, second)

    def _turned(self, step: AttentionStep, tensor: Tensor) -> Tensor:
        """A step with its last two axes swapped."""
        if step not in self._watched:
            return tensor
        return self._seen(step, tensor.transpose(-1, -2)).transpose(-1, -2)

    def _seen(self, step: AttentionStep, tensor: Tensor) -> Tensor:
        if step not in self._watched:
            return tensor
        if tensor.dim() == 4:
            return self._visit(step, tensor)
        assert self._heads is not None, "an attention without an axis for the heads"
        return self._visit(step, tensor.unflatten(0, (-1, self._heads))).flatten(0, 1)
