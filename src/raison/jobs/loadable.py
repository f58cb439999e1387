"""A model, or what contains one, that another process loads instead of receiving it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Loadable(Generic[T]):
    """`given`, or what `load` returns. Sent to another process, it is loaded there; without `load`, it is sent."""

    given: T | None
    load: Callable[[], T] | None = None

    def get(self) -> T:
        """What was given; otherwise it is loaded, each time."""
        if self.given is not None:
            return self.given
        assert self.load is not None, "what is not given can be loaded"
        return self.load()

    def __getstate__(self) -> dict[str, object]:
        return {"given": self.given if self.load is None else None, "load": self.load}
