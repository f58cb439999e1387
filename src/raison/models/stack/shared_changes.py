"""Changes to objects that all threads share: the first context that needs one makes it, the last one undoes it.

This also holds if Ctrl-C arrives while a change is made or undone.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Generic, TypeVar

T = TypeVar("T")
V = TypeVar("V")


@dataclass(slots=True)
class _Changed(Generic[T, V]):
    """An object, what it was before, and the contexts that need the change."""

    item: T
    before: V
    users: set[object]


class SharedChanges(Generic[T, V]):
    """The changes of one kind. `read` gives what an object is now, `change` changes it, `restore` gives it back what it
    was; the last two may be repeated. An object that `is_changed` from the start is left alone."""

    def __init__(
        self,
        read: Callable[[T], V],
        change: Callable[[T], None],
        restore: Callable[[T, V], None],
        is_changed: Callable[[T], bool] = lambda _item: False,
    ) -> None:
        self._read, self._change, self._restore, self._is_changed = read, change, restore, is_changed
        self._known: dict[int, _Changed[T, V]] = {}
        self._lock = Lock()

    @contextmanager
    def made(self, items: Iterable[T]) -> Iterator[None]:
        """Inside the context, the objects are changed."""
        user = object()
        try:
            self._make(items, user)
            yield
        finally:
            try:
                self._undo(user)
            except KeyboardInterrupt:
                self._undo(user)
                raise

    @contextmanager
    def before(self) -> Iterator[Callable[[T], V]]:
        """A function that gives what an object is without these changes. Inside the context, none is made or undone."""
        with self._lock:
            yield lambda item: self._known[id(item)].before if id(item) in self._known else self._read(item)

    def _make(self, items: Iterable[T], user: object) -> None:
        with self._lock:
            for item in items:
                known = self._known.get(id(item))
                if known is not None:
                    known.users.add(user)
                elif self._is_changed(item):
                    continue
                else:
                    self._known[id(item)] = _Changed(item, self._read(item), {user})
                # Another thread may have been interrupted while it made or undid the change.
                if not self._is_changed(item):
                    self._change(item)

    def _undo(self, user: object) -> None:
        with self._lock:
            for key in [key for key, known in self._known.items() if user in known.users]:
                known = self._known[key]
                if known.users == {user}:
                    self._restore(known.item, known.before)
                    del self._known[key]
                else:
                    known.users.discard(user)
