"""The checks of types and shapes that the tests make of all calls: beartype, once for each function of the source."""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, get_args

import jaxtyping
from beartype import BeartypeConf, beartype

_INNER: dict[tuple[str, str, str], Callable[..., object]] = {}
_WITH_SHAPES = jaxtyping.jaxtyped
_TYPES = BeartypeConf(violation_type=jaxtyping.TypeCheckError)


def checked(signature: Callable[..., object]) -> Callable[..., object]:
    """An empty function of this signature that checks its arguments, as jaxtyping asks for it.

    A function inside a function is made again with every call of the outer one. Its checks stay the same, and take more
    time to make than many a call.
    """
    if not _inside(signature):
        return beartype(signature)
    key = (signature.__module__, signature.__qualname__, repr(signature.__annotations__))
    if key not in _INNER:
        _INNER[key] = beartype(signature)
    return _INNER[key]


def jaxtyped(*, typechecker: Callable[..., object]) -> Callable[[Any], Any]:
    """jaxtyping's decorator, which its import hook puts on everything, where a signature has shapes.

    It binds the arguments of every call to the signature in Python, up to a hundred times the work of the function
    itself. beartype alone checks the same where there are no shapes.
    """
    with_shapes = _WITH_SHAPES(typechecker=typechecker)

    def decorated(made: Any) -> Any:
        if not inspect.isclass(made):
            return with_shapes(made) if _inside(made) or not _plain(made) else _types_checked(made)
        init = vars(made).get("__init__")
        if init is None or not dataclasses.is_dataclass(made) or inspect.unwrap(init) is not init:
            return made
        if not _plain(init):
            return with_shapes(made)
        made.__init__ = _types_checked(init)
        return made

    return decorated


def _inside(function: Callable[..., object]) -> bool:
    return "<locals>" in function.__qualname__


def _plain(function: Callable[..., object]) -> bool:
    """Whether no annotation has a shape, or is a text, of which jaxtyping finds out more."""
    waiting = list(function.__annotations__.values())
    while waiting:
        hint = waiting.pop()
        if isinstance(hint, str) or (inspect.isclass(hint) and issubclass(hint, jaxtyping.AbstractArray)):
            return False
        waiting += hint if isinstance(hint, list) else get_args(hint)
    return True


def _types_checked(function: Callable[..., object]) -> Callable[..., object]:
    typed = beartype(function, conf=_TYPES)

    @functools.wraps(function)
    def call(*args: Any, **settings: Any) -> object:
        return (function if jaxtyping.config.jaxtyping_disable else typed)(*args, **settings)

    return call


jaxtyping.jaxtyped = jaxtyped
