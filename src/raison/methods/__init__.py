"""The catalogue of methods: one file is one method. `raison.methods.CamelCase` is the class in camel_case.py."""

from raison.core.method import Method
from raison.core.registry import Catalogue

CATALOGUE: Catalogue[Method] = Catalogue(__name__, "method")


def __getattr__(name: str) -> type[Method]:
    classes = CATALOGUE.classes()
    if name not in classes:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(classes)}")
    return CATALOGUE.get(classes[name])


def __dir__() -> list[str]:
    return sorted([*CATALOGUE.classes(), "CATALOGUE"])
