"""What a page needs to know before it asks: the models, the methods, the limits."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from raison._version import __version__
from raison.combining.advice import advised
from raison.core.errors import RaisonError
from raison.core.inputs.unit import SPLITS
from raison.core.method import Method
from raison.core.model import LanguageModel
from raison.core.settings.reading import plain_values
from raison.explaining.diagnosis import doctor
from raison.methods import CATALOGUE
from raison.models.adapters.writer import Writer
from raison.web.component.facts import QUICK
from raison.web.server.calls import USUAL
from raison.web.server.settings import ANSWER, BODY, Limits

SHOWN = 200
"""Classes that are named, at most."""


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """A model as it is offered. `unable` says why other methods do not work; `quick` is None where no such does."""

    name: str
    outputs: str
    classes: tuple[str, ...]
    class_count: int
    strings: int
    units: tuple[str, ...]
    max_tokens: int | None
    removals: tuple[str, ...]
    methods: tuple[str, ...]
    unable: dict[str, str]
    quick: str | None
    advised: str | None
    """The method that an audit of this very model recommended."""


@dataclass(frozen=True, slots=True)
class LimitFacts:
    """What a request may take; see the options of `raison serve`."""

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
class Catalogue:
    """All methods."""

    methods: tuple[MethodFacts, ...]


def offer(models: Mapping[str, Any], limits: Limits) -> Offer:
    """The answer of GET /api/models."""
    limited = LimitFacts(limits.characters, limits.passes, limits.seconds, limits.new_tokens, BODY, ANSWER)
    facts = tuple(_facts(name, model) for name, model in models.items())
    return Offer(__version__, facts, limited)


def catalogue() -> Catalogue:
    """The answer of GET /api/methods."""
    return Catalogue(tuple(_method(name, CATALOGUE.create(name)) for name in CATALOGUE.names))


def _facts(name: str, model: LanguageModel | Writer) -> ModelFacts:
    unable = _unable(model)
    able = tuple(method for method in CATALOGUE.names if method not in unable)
    quick = next((method for method in QUICK if method in able), None)
    if isinstance(model, Writer):
        return ModelFacts(name, "text", (), 0, 1, SPLITS, model.max_tokens, (), able, unable, quick, None)
    return ModelFacts(
        name=name,
        outputs=model.outputs,
        classes=model.classes[:SHOWN],
        class_count=len(model.classes),
        strings=model.strings,
        units=SPLITS,
        max_tokens=model.max_tokens,
        removals=model.removals,
        methods=able,
        unable=unable,
        quick=quick,
        advised=advised(model),
    )


def _unable(model: LanguageModel | Writer) -> dict[str, str]:
    """Why methods do not work on the model with their default settings."""
    if isinstance(model, Writer):
        return {name: "; ".join(reasons) for name, reasons in doctor(model).methods.items() if reasons}
    found = {name: _reason(CATALOGUE.create(name), model) for name in CATALOGUE.names}
    return {name: reason for name, reason in found.items() if reason}


def _reason(method: Method, model: LanguageModel) -> str:
    if reasons := method.lacking(model):
        return "; ".join(reasons)
    try:
        method.check(model)
    except RaisonError as error:
        return str(error)
    return ""


def _method(name: str, method: Method) -> MethodFacts:
    cost = method.cost(USUAL)
    return MethodFacts(
        name=name,
        about=" ".join((method.__doc__ or "").split("\n\n")[0].split()),
        needs=tuple(sorted(kind.name for kind in method.needs)),
        properties=tuple(sorted(method.properties)),
        signed=method.signed,
        passes=method.passes,
        settings={one.name: plain_values(getattr(method, one.name)) for one in fields(method)},
        reference=method.reference,
        forwards=cost.forwards,
        backwards=cost.backwards,
    )
