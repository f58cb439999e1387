"""Trials of shortcuts: passes that compute less than the model's own, and that not every model can take."""

from collections.abc import Callable
from typing import TypeVar

import torch

from raison.core.errors import ForwardError, RaisonError

T = TypeVar("T")

_FAILURES = (RuntimeError, ValueError, TypeError, LookupError, AttributeError, AssertionError)


def tried(shortcut: Callable[[], T]) -> T | None:
    """What a shortcut gives; None if the model cannot take it.

    A lack of memory, and a RaisonError of code that is notified of passes, end the work.
    """
    try:
        return shortcut()
    except ForwardError:
        return None
    except (torch.OutOfMemoryError, RaisonError):
        raise
    except _FAILURES:
        return None
