"""Requests of the component, read from JSON, and their answers by models of this process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from raison.core.errors import InputError, UnknownNameError
from raison.core.inputs.unit import Granularity, check_unit
from raison.core.model import LanguageModel
from raison.core.results.explanation import Explanation
from raison.core.settings.reading import Fields
from raison.explaining.explain import explain

_FIELDS = ("model", "text", "method", "unit", "target", "of", "removal", "seed", "truncate")


@dataclass(frozen=True, slots=True)
class ExplainRequest:
    """A request for one explanation. A target of two names is (this, not that)."""

    model: str
    text: str | tuple[str, str]
    method: str
    unit: Granularity
    target: str | tuple[str, str] | None
    of: str | None
    removal: str | None = None
    seed: int = 0
    truncate: bool = False

    @classmethod
    def read(cls, body: Mapping[str, object]) -> "ExplainRequest":
        """From a JSON object. Raises a RaisonError in one line."""
        known = request_fields(body, _FIELDS)
        for name in ("of", "removal"):
            known.optional_string(name)
        text, target = (_strings(known, name) for name in ("text", "target"))
        if text is None:
            known.refuse("text", "a string, or a list of two")
        if "seed" in known.data:
            known.whole("seed")
        if "truncate" in known.data:
            known.flag("truncate")
        values = {name: known.data[name] for name in _FIELDS if name in known.data}
        values |= {"text": text, "target": target, "of": values.get("of"), "unit": check_unit(values["unit"])}
        return cls(**values)


def explained(models: Mapping[str, LanguageModel], request: ExplainRequest) -> Explanation:
    """The requested explanation. Raises RaisonErrors."""
    return explain(
        model_of(models, request.model),
        request.text,
        request.method,
        unit=request.unit,
        target=request.target,
        of=request.of,
        removal=request.removal,
        seed=request.seed,
        truncate=request.truncate,
        progress=False,
    )


def read_explanations(body: Mapping[str, object]) -> list[Explanation]:
    """The explanations to draw, from a JSON object with a list of one or more."""
    explanations = [
        Explanation.from_dict(dict(item.data)) for item in Fields(body, "a request").objects("explanations")
    ]
    if not explanations:
        raise InputError("there is nothing to show: give at least one explanation.")
    return explanations


def request_fields(body: Mapping[str, object], names: Sequence[str]) -> Fields:
    """The fields of a request that may have these, with the usual method and unit. Raises a RaisonError in one line."""
    for name in body:
        if name not in names:
            raise UnknownNameError("field of a request", name, names)
    fields = Fields({"method": "auto", "unit": "word", **body}, "a request")
    fields.need(["model", "text"])
    for name in ("model", "method", "unit"):
        fields.string(name)
    return fields


def model_of(models: Mapping[str, Any], name: str) -> Any:
    """The model that a request names. Raises UnknownNameError."""
    if name not in models:
        raise UnknownNameError("model", name, models)
    return models[name]


def _strings(fields: Fields, name: str) -> str | tuple[str, str] | None:
    """A string, a pair of strings, or null."""
    value = fields.data.get(name)
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, list | tuple):
        fields.refuse(name, "a string, or a list of two (a class is given by its name)")
    first, second = fields.strings(name, 2)
    return first, second
