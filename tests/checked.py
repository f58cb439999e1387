"""The checks of types and shapes that the tests make of all calls: beartype, once for each function of the source."""

from collections.abc import Callable

from beartype import beartype

_INNER: dict[tuple[str, str, str], Callable[..., object]] = {}


def checked(signature: Callable[..., object]) -> Callable[..., object]:
    """An empty function of this signature that checks its arguments, as jaxtyping asks for it.

    A function inside a function is made anew with every call of the outer one. Its checks stay the same, and take more
    time to make than many a call.
    """
    if "<locals>" not in signature.__qualname__:
        return beartype(signature)
    key = (signature.__module__, signature.__qualname__, repr(signature.__annotations__))
    if key not in _INNER:
        _INNER[key] = beartype(signature)
    return _INNER[key]
