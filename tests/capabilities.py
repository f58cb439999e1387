"""The kinds of capability, found by their files."""

import importlib
import pkgutil

from raison.core import capabilities
from raison.core.capability import Capability


def _kind(name: str) -> type[Capability]:
    module = importlib.import_module(f"{capabilities.__name__}.{name}")
    [kind] = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Capability) and value.__module__ == module.__name__
    ]
    return kind


KINDS = {file.name: _kind(file.name) for file in pkgutil.iter_modules(capabilities.__path__)}
"""By file."""
