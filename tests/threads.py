"""Something done in another thread."""

import threading
from collections.abc import Callable


def in_another(run: Callable[[], object]) -> None:
    """Call it in another thread and wait; what it raises is raised here."""
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            run()
        except BaseException as failure:  # noqa: BLE001 - handed on to the thread that waits
            failures.append(failure)

    thread = threading.Thread(target=guarded)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
