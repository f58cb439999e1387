"""The place in a model where numbers stop being finite."""

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import Tensor, nn

from raison.core.errors import NonFiniteError
from raison.models.stack.hooks import hooked


def way_out(dtype: torch.dtype) -> str:
    """Advice for a model whose numbers are not finite."""
    if dtype is torch.float16:
        return (
            "float16 holds no number above 65,504: load the model in bfloat16 or float32 "
            "(dtype='bfloat16', dtype='float32')."
        )
    if dtype is torch.float32:
        return "Check the weights."
    return "Check the weights, or load the model in float32 (dtype='float32')."


def first_nonfinite(model: nn.Module, run: Callable[[], object]) -> str | None:
    """The dotted name of the first module, in order of computation, whose output has NaN or infinity; None if none.

    `run` makes one pass of the model, and is called once. Modules inside come before those around them, so the name is
    that of the innermost culprit. The model itself, whose dotted name is empty, is named by its class.
    """
    first: list[str] = []

    names = {module: name or type(model).__name__ for name, module in model.named_modules()}

    def watch(module: nn.Module, _args: object, output: object) -> None:
        if not first and not all(_finite(tensor) for tensor in _tensors(output)):
            first.append(names[module])

    with hooked(names, after=watch):
        run()
    return first[0] if first else None


def nonfinite_logits(name: str, text: str, model: nn.Module, run: Callable[[], object]) -> NonFiniteError:
    """The error message for logits that are not finite; `run` repeats the pass that gave them."""
    module = first_nonfinite(model, run)
    dtype = next(model.parameters()).dtype
    where = f" They arise first in {module}." if module else ""
    return NonFiniteError(f"{name} returned NaN or infinite logits for {text!r:.100}.{where} {way_out(dtype)}")


def _finite(tensor: Tensor) -> bool:
    # Integers are always finite, and so are booleans.
    return not tensor.is_floating_point() or bool(torch.isfinite(tensor.detach()).all())


def _tensors(output: object) -> Iterator[Tensor]:
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, Mapping):
        for item in output.values():
            yield from _tensors(item)
    elif isinstance(output, tuple | list):
        for item in output:
            yield from _tensors(item)
