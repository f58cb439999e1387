"""How a transformer is given the stored keys and values of tokens that it has read before."""

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

from torch import nn
from transformers import Cache


def given_cache(base: nn.Module, stored: Cache | None) -> dict[str, Any]:
    """The argument with which `base` gets stored keys and values, under the name that its version uses."""
    return {_name(type(base).forward): stored}


@cache
def _name(forward: Callable[..., object]) -> str:
    # Renamed in transformers 5.24.
    return "cache" if "cache" in inspect.signature(forward).parameters else "past_key_values"
