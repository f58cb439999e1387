"""The catalogue of metrics: one file is one metric. `raison.metrics.CamelCase` is the class in camel_case.py."""

from raison.core.metric import Metric
from raison.core.registry import Catalogue

CATALOGUE: Catalogue[Metric] = Catalogue(__name__, "metric")


def __getattr__(name: str) -> type[Metric]:
    classes = CATALOGUE.classes()
    if name not in classes:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(classes)}")
    return CATALOGUE.get(classes[name])


def __dir__() -> list[str]:
    return sorted([*CATALOGUE.classes(), "CATALOGUE"])
