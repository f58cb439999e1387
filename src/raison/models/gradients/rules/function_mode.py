"""Watches a model's torch calls and lets rules replace their backward passes. The model itself is not changed.

Inside the context, this thread's calls are seen by name; a rule computes a call as it is and gives its result another
backward pass. Parameters are constants inside, so that exactly the tensors that depend on the given embeddings carry
gradients.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import activations

from raison.core.errors import UnsupportedError
from raison.models.stack.hooks import hooked


@dataclass(frozen=True, slots=True)
class TorchCall:
    """One torch call; at least one of its tensors carries a gradient."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    def run(self) -> Any:
        """What the call returns, with its own backward pass."""
        return self.function(*self.args, **self.kwargs)

    def argument(self, place: int, name: str, default: Any = None) -> Any:
        """An argument, given by place or by name."""
        return self.args[place] if len(self.args) > place else self.kwargs.get(name, default)


Rule = Callable[[TorchCall], Any]

_OTHERWISE = "integrated_gradients needs no rules."


@dataclass(frozen=True, slots=True, eq=False)
class RuleBook:
    """Rules by the names of torch's functions and methods, and the one for whole activation modules."""

    functions: Mapping[str, Rule]
    activation: Rule | None = None


@contextmanager
def applied(book: RuleBook, model: nn.Module) -> Iterator[None]:
    """Inside, the rules hold for this thread's calls, and for the model's activation modules. Contexts do not nest."""
    watch = _RuleMode(book)
    whole = [] if book.activation is None else [module for module in model.modules() if _whole(module)]
    with hooked(whole, before=watch.enter, inner=watch.leave), watch:
        yield


def followed(book: RuleBook) -> AbstractContextManager[object]:
    """Inside, the rules hold for this thread's calls alone: for parts of a model without activation modules."""
    return _RuleMode(book)


def pulled(value: Tensor, source: Tensor, pull: Callable[[Tensor], Tensor]) -> Tensor:
    """`value`, whose gradients go to `source` through the function `pull`."""
    # Not every version of torch annotates it.
    apply: Callable[..., Tensor] = _Pulled.apply
    return apply(value.detach(), source, pull)


def carries(value: Any) -> bool:
    """Whether gradients lead from the value to the embeddings."""
    return isinstance(value, Tensor) and value.requires_grad


def refuse_fused(_call: TorchCall) -> Any:
    """The rule of fused attention kernels, whose softmax cannot be seen."""
    raise UnsupportedError(
        "relevance cannot go back through this model's attention",
        ["it calls a fused kernel instead of the attention interface of transformers"],
        f"Load the model with attn_implementation='eager'. {_OTHERWISE}",
    )


class _Pulled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, value: Tensor, source: Tensor, pull: Callable[[Tensor], Tensor]) -> Tensor:
        ctx.pull, ctx.dtype = pull, source.dtype
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, Tensor, None]:
        return None, ctx.pull(grads[0]).to(ctx.dtype), None


class _RuleMode(TorchFunctionMode):
    def __init__(self, book: RuleBook) -> None:
        super().__init__()
        self._book = book
        self._inside = 0

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        name = getattr(func, "__name__", "")
        kwargs = kwargs or {}
        if self._inside or name in ("__get__", "__set__"):
            return func(*args, **kwargs)
        args = tuple(_constant(value) for value in args)
        kwargs = {key: _constant(value) for key, value in kwargs.items()}
        rule = self._book.functions.get(name)
        try:
            if rule is None or not _any_carries((*args, *kwargs.values())):
                return func(*args, **kwargs)
            return rule(TorchCall(func, args, kwargs))
        except RuntimeError as error:
            # Results of rules are views, which torch does not let change.
            if "modified inplace" not in str(error):
                raise
            raise UnsupportedError(
                "relevance cannot go back through this model", [f"it changes a result in place, by {name}"], _OTHERWISE
            ) from None

    def enter(self, _module: nn.Module, _args: Any, _kwargs: Any) -> None:
        """Calls inside an activation are ignored, until `leave` gives its result another backward pass."""
        self._inside += 1

    def leave(self, module: nn.Module, args: tuple[Any, ...], _output: Any) -> Any:
        try:
            if self._book.activation is None or not carries(args[0]):
                return None
            return self._book.activation(TorchCall(module.forward, args, {}))
        finally:
            self._inside -= 1


def _whole(module: nn.Module) -> bool:
    """Activations that transformers computes in several calls, such as the GELU of GPT-2."""
    return type(module).__module__ == activations.__name__ and not list(module.parameters())


def _constant(value: Any) -> Any:
    """Trained parameters, alone or in a list, without their gradients."""
    if isinstance(value, nn.Parameter):
        return value.detach() if value.requires_grad else value
    if type(value) in (list, tuple):
        return type(value)(_constant(item) for item in value)
    return value


def _any_carries(values: tuple[Any, ...]) -> bool:
    return any(carries(item) for value in values for item in (value if isinstance(value, (list, tuple)) else (value,)))
