"""The Hugging Face Hub, with a timeout of a few seconds."""

import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

SECONDS = 5
"""Seconds that the Hub may take to respond."""
_lock = threading.Lock()
_users: list[str] = []
"""The reasons of the threads that are using no Hub because it does not respond."""


@contextmanager
def patiently() -> Iterator[str]:
    """Inside the context, the Hub is used only if it responds; otherwise only earlier downloads are read.

    Yields "", or the reason why the Hub is not used, for later error messages. Without this, each file would be
    requested six times, for ten seconds each.
    """
    # Imported here, because nothing else needs it.
    from huggingface_hub import constants

    with _lock:
        offline = constants.HF_HUB_OFFLINE and not _users
        silent = "" if offline else _silence(constants.ENDPOINT, int(time.monotonic()) // 60)
        if silent:
            _users.append(silent)
            constants.HF_HUB_OFFLINE = True
    try:
        yield silent
    finally:
        if silent:
            with _lock:
                _users.pop()
                constants.HF_HUB_OFFLINE = bool(_users)


@cache
def _silence(endpoint: str, _minute: int) -> str:
    """The reason why the Hub does not answer, or ""; checked again after a minute."""
    try:
        request = urllib.request.Request(endpoint, method="HEAD")
        with urllib.request.urlopen(request, timeout=SECONDS):
            return ""
    except urllib.error.HTTPError:
        return ""
    except (OSError, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        slow = isinstance(error, TimeoutError) or isinstance(reason, TimeoutError)
        why = f"did not respond within {SECONDS} seconds" if slow else f"cannot be reached ({reason})"
        return f"the Hub ({endpoint}) {why}; give the folder of the model or data set instead"
