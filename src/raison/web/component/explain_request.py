"""What the component asks, read from JSON, and answers by models of this process."""

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
    """One explanation that is asked for. A target of two names is (this, not that)."""

    model: str
    text: str | tuple[str, str]
    method: str
    unit: Granularity
    target: str | tuple[str, str] | None
    of: str | None

    @classmethod
    def read(cls, body: Mapping[str, object]) -> "ExplainRequest":
        """From a JSON object. Raises a RaisonError in one line."""
        found = Fields(body, "a request")
        for name in body:
            if name not in _FIELDS:
                raise UnknownNameError("field of a request", name, _FIELDS)
        found.need(["model", "text"])
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
    """The explanation that is asked for. Raises RaisonErrors."""
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
    """The explanations that are to be painted, from a JSON object with a list of one or more."""
    found = [Explanation.from_dict(dict(item.data)) for item in Fields(body, "a request").objects("explanations")]
    if not found:
        raise InputError("there is nothing to show: give at least one explanation.")
    return found


def _strings(found: Fields, name: str) -> str | tuple[str, str] | None:
    """A string, a pair of strings, or null."""
    value = found.data[name]
    if value is None or isinstance(value, str):
        return value
    first, second = found.strings(name, 2)
    return first, second
