"""The facts that a page needs first: the models, the methods, the limits."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from raison._version import __version__
from raison.core.method import Method
from raison.core.registry import name_of, summary_of
from raison.core.settings.reading import plain_values
from raison.core.stated_facts import USUAL
from raison.methods import CATALOGUE
from raison.web.component.model_facts import ModelFacts, facts_of
from raison.web.server.settings import ANSWER, BODY, Limits


@dataclass(frozen=True, slots=True)
class LimitFacts:
    """The limits of a request; see the options of `raison serve`."""

    characters: int
    passes: int
    seconds: int
    new_tokens: int
    body: int
    answer: int


@dataclass(frozen=True, slots=True)
class Offer:
    """What is served."""

    version: str
    models: tuple[ModelFacts, ...]
    limits: LimitFacts


@dataclass(frozen=True, slots=True)
class MethodFacts:
    """A method of the catalogue; `forwards` and `backwards` are the passes of a text of 20 units."""

    name: str
    about: str
    needs: tuple[str, ...]
    properties: tuple[str, ...]
    signed: bool
    passes: str
    settings: dict[str, Any]
    reference: str
    forwards: int
    backwards: int


@dataclass(frozen=True, slots=True)
class MethodList:
    """All methods."""

    methods: tuple[MethodFacts, ...]


def offer(models: Mapping[str, Any], limits: Limits) -> Offer:
    """The answer of GET /api/models."""
    limited = LimitFacts(limits.characters, limits.passes, limits.seconds, limits.new_tokens, BODY, ANSWER)
    facts = tuple(facts_of(name, model) for name, model in models.items())
    return Offer(__version__, facts, limited)


def catalogue() -> MethodList:
    """The answer of GET /api/methods, without files that cannot be used: each model's facts say why."""
    return MethodList(tuple(_method(CATALOGUE.create(usable)) for usable in CATALOGUE.usable()))


def _method(method: Method) -> MethodFacts:
    cost = method.cost(USUAL)
    return MethodFacts(
        name=name_of(method),
        about=summary_of(method.__doc__ or ""),
        needs=tuple(sorted(kind.name for kind in method.needs)),
        properties=tuple(sorted(method.properties)),
        signed=method.signed,
        passes=method.passes,
        settings={one.name: plain_values(getattr(method, one.name)) for one in fields(method)},
        reference=method.reference,
        forwards=cost.forwards,
        backwards=cost.backwards,
    )
