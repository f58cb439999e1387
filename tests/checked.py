"""The checks of types and shapes that the tests make of calls whose signature has shapes, by beartype."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, get_args

import jaxtyping
from beartype import beartype

_INNER: dict[tuple[str, str, str], Callable[..., object]] = {}
_WITH_SHAPES = jaxtyping.jaxtyped


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

    Other signatures are mypy's. A function inside a function is decorated with every call of the outer one, and not at
    all while nothing is checked.
    """
    with_shapes = _WITH_SHAPES(typechecker=typechecker)

    def decorated(made: Any) -> Any:
        if _inside(made) and jaxtyping.config.jaxtyping_disable:
            return made
        if not inspect.isclass(made):
            return made if _plain(made) else with_shapes(made)
        init = vars(made).get("__init__")
        if init is None or not dataclasses.is_dataclass(made) or inspect.unwrap(init) is not init:
            return made
        return made if _plain(init) else with_shapes(made)

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


jaxtyping.jaxtyped = jaxtyped
