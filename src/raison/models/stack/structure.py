"""What a model is made of, and which of it was made by others than the usual libraries: of that nothing is known."""

import functools
from collections.abc import Iterator

from torch import nn

from raison.models.stack.hooks import foreign_hooks

LIBRARIES = ("accelerate", "bitsandbytes", "peft", "raison", "torch", "transformers")
"""The packages whose modules, hooks and forward functions compute from their inputs and the model's tensors alone."""


def is_of_libraries(thing: object) -> bool:
    """Whether a class, a function or an object was defined in one of these packages."""
    while isinstance(thing, functools.partial) and "__module__" not in vars(thing):
        thing = thing.func
    # Functions that are made from code objects have no module.
    return str(getattr(thing, "__module__", "")).partition(".")[0] in LIBRARIES


def is_foreign(module: nn.Module) -> bool:
    """Whether nothing is known of a module: its class is none of the libraries', and it stands for no linear layer.

    Quantised linear layers of other packages and of the caller's compute what the layer that they replace did.
    """
    if is_of_libraries(type(module)):
        return False
    return not (hasattr(module, "in_features") and hasattr(module, "out_features"))


def has_unseen_state(model: nn.Module) -> bool:
    """Whether the result of a pass may depend on something outside of the model's tensors and settings.

    So it is with a hook or a replaced forward function of the caller's: what its closure holds cannot be compared.
    """
    return any(not is_of_libraries(function) for module in model.modules() for function in _functions(module))


def structure_of(model: nn.Module) -> tuple[type, ...]:
    """The kinds of a model's modules, in order; costs less than a millisecond.

    What was found by a trial of the model holds as long as no module is replaced by one of another kind.
    """
    return tuple(map(type, model.modules()))


def _functions(module: nn.Module) -> Iterator[object]:
    """The functions that were put on a module."""
    yield from foreign_hooks(module)
    if "forward" in vars(module):
        yield vars(module)["forward"]
