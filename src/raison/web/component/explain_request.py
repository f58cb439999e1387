"""Requests of the component, read from JSON, and their answers by models of this process."""

from collections.abc import Mapping
from dataclasses import dataclass

from raison.core.errors import InputError, UnknownNameError
from raison.core.inputs.unit import Granularity, check_unit
from raison.core.model import LanguageModel
from raison.core.results.explanation import Explanation
from raison.core.settings.reading import Fields
from raison.explaining.explain import explain

_FIELDS = ("model", "text", "method", "unit", "target", "of")


@dataclass(frozen=True, slots=True)
class ExplainRequest:
    """A request for one explanation. A target of two names is (this, not that)."""

    model: str
    text: str | tuple[str, str]
    method: str
    unit: Granularity
    target: str | tuple[str, str] | None
    of: str | None

    @classmethod
    def read(cls, body: Mapping[str, object]) -> "ExplainRequest":
        """From a JSON object. Raises a RaisonError in one line."""
        fields = Fields(body, "a request")
        for name in body:
            if name not in _FIELDS:
                raise UnknownNameError("field of a request", name, _FIELDS)
        fields.need(["model", "text"])
        known = Fields({"method": "auto", "unit": "word", "target": None, "of": None, **body}, "a request")
        for name in ("model", "method", "unit"):
            known.string(name)
        known.optional_string("of")
        text, target = (_strings(known, name) for name in ("text", "target"))
        if text is None:
            known.refuse("text", "a string, or a list of two")
        values = known.data
        return cls(values["model"], text, values["method"], check_unit(values["unit"]), target, values["of"])


def explained(models: Mapping[str, LanguageModel], request: ExplainRequest) -> Explanation:
    """The requested explanation. Raises RaisonErrors."""
    if request.model not in models:
        raise UnknownNameError("model", request.model, models)
    return explain(
        models[request.model],
        request.text,
        request.method,
        unit=request.unit,
        target=request.target,
        of=request.of,
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


def _strings(fields: Fields, name: str) -> str | tuple[str, str] | None:
    """A string, a pair of strings, or null."""
    value = fields.data[name]
    if value is None or isinstance(value, str):
        return value
    first, second = fields.strings(name, 2)
    return first, second
