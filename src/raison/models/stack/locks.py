"""A lock that can be copied with the object that holds it: the copy gets its own lock."""

from threading import Lock
from types import TracebackType


class OwnLock:
    """Like threading.Lock in a with statement, in objects that are deep-copied with their model."""

    def __init__(self) -> None:
        self._lock = Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def __deepcopy__(self, memo: dict[int, object]) -> "OwnLock":
        return OwnLock()
