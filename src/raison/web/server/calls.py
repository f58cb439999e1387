"""Requests as calls of the library: what is allowed, which requests are batched, and their answers."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from raison.core.errors import InputError
from raison.core.method import Method
from raison.core.model import LanguageModel
from raison.core.registry import label_of
from raison.core.results.explanation import Explanation
from raison.core.settings.fields import fields_of
from raison.core.settings.reading import dump
from raison.core.stated_facts import USUAL
from raison.explaining.explain import explain, within_budget
from raison.explaining.given_texts import InputOptions
from raison.explaining.ranking import fitting, read_ranked
from raison.methods import CATALOGUE as METHODS
from raison.metrics import CATALOGUE as METRICS
from raison.models.adapters.writing.writer import Writer
from raison.web.component.writing_request import continued
from raison.web.server.bodies import CiteBody, ExplainBody, PredictBody, characters, given, tupled, tupled_spans
from raison.web.server.pass_bounds import of_output, of_prediction, of_ranking
from raison.web.server.settings import ANSWER, Limits

TOGETHER = 32
"""Maximum number of requests that one call answers."""
WORK = 640
"""Approximate number of passes of such a call, during which others wait."""


class ModelRequest(ABC):
    """A request for a model. Requests that `joins` says can be answered by one call."""

    body: PredictBody | CiteBody
    together: int
    """Maximum number of such requests in one call."""

    @property
    @abstractmethod
    def about(self) -> object:
        """The text, in plain values."""

    @property
    @abstractmethod
    def settings(self) -> str:
        """Everything but the text; equal for equal requests."""

    @abstractmethod
    def check(self, model: LanguageModel | Writer, limits: Limits) -> None:
        """Raise a RaisonError for an invalid text, before it joins a batch."""

    @abstractmethod
    def run(self, model: Any, requests: Sequence["ModelRequest"]) -> list[bytes]:
        """The answers of requests that join, in JSON. Raises RaisonErrors."""

    @property
    def key(self) -> bytes:
        """A key that is equal for equal requests and does not reveal the text."""
        whole = dump([type(self).__name__, self.settings, self.about])
        return hashlib.sha256(whole.encode()).digest()

    def joins(self, other: "ModelRequest") -> bool:
        """Whether one call can answer both."""
        return type(self) is type(other) and self.settings == other.settings


@dataclass(frozen=True)
class ExplanationRequest(ModelRequest):
    """POST /api/explain."""

    body: ExplainBody
    method: Method
    label: str
    together: int

    @classmethod
    def read(cls, body: ExplainBody, limits: Limits) -> "ExplanationRequest":
        """Raises a RaisonError for settings that are invalid for any text."""
        check_size(body, limits)
        method = within_budget(body.method, body.budget)
        check_call(method, limits)
        if body.select is not None:
            check_call(METRICS.create(body.select), limits)
        most = max(1, min(TOGETHER, WORK // max(1, method.total_cost(USUAL).passes)))
        return cls(body, method, label_of(method), most)

    @property
    def about(self) -> object:
        return self.body.model_dump()["text"]

    @property
    def settings(self) -> str:
        values = self.body.model_dump(exclude={"text", "budget"}) | {"method": self.label}
        return dump(values)

    def check(self, model: LanguageModel | Writer, limits: Limits) -> None:
        if isinstance(model, Writer):
            bound = of_output(model, self.body, self.method)
        else:
            bound = of_prediction(model, self.body, self.method)
        bound.check(f"{self.label:.80}", limits)

    def run(self, model: Any, requests: Sequence[ModelRequest]) -> list[bytes]:
        body, texts = self.body, [_text(one) for one in requests]
        spans = tupled_spans(body.units)
        units: Any = spans if spans is None or isinstance(spans, str) else [spans] * len(texts)
        # The request decides which signature of `explain` applies.
        explanations: Any = explain(
            model,
            cast("Any", texts),
            self.method,
            unit=cast("Any", body.unit),
            units=units,
            language=body.language,
            target=tupled(body.target),
            of=body.of,
            removal=body.removal,
            seed=body.seed,
            truncate=body.truncate,
            precision=cast("Any", body.precision),
            select=body.select,
            progress=False,
            output=body.output,
            max_new_tokens=body.max_new_tokens,
            contrast=body.contrast,
            earlier=body.earlier,
            threshold=body.threshold,
        )
        return [json_of(_plain(one)) for one in explanations]


@dataclass(frozen=True)
class PredictionRequest(ModelRequest):
    """POST /api/predict."""

    body: PredictBody
    together: int = TOGETHER

    @classmethod
    def read(cls, body: PredictBody, limits: Limits) -> "PredictionRequest":
        """Raises InputError for a text that is too long."""
        check_size(body, limits)
        return cls(body)

    @property
    def about(self) -> object:
        return self.body.model_dump()["text"]

    @property
    def settings(self) -> str:
        return dump(self.body.model_dump(exclude={"text"}))

    def check(self, model: LanguageModel | Writer, limits: Limits) -> None:
        if isinstance(model, Writer):
            return
        text = given(self.body.text)
        ranked = read_ranked(text)
        if ranked is not None:
            of_ranking(model, ranked[0][0], self.body.truncate).check("a prediction", limits)
            return
        texts, unit = InputOptions().several([text])
        fitting(model, texts).tokenized(texts, unit, self.body.truncate)

    def run(self, model: Any, requests: Sequence[ModelRequest]) -> list[bytes]:
        texts, tokens = [_text(one) for one in requests], self.body.max_new_tokens
        if isinstance(model, Writer):
            return [json_of(continued(model, text, tokens)) for text in texts]
        if tokens is not None:
            raise InputError("max_new_tokens applies to generative models only: leave it out.")
        # Random scores need no pass of their own: the text is evaluated, and the text without its words.
        explanations = explain(model, cast("Any", texts), "random", truncate=self.body.truncate, progress=False)
        return [json_of(_predicted(one)) for one in cast("list[Explanation]", explanations)]


def check_call(instance: object, limits: Limits) -> None:
    """Raise InputError for a method or metric whose settings name a file or a model, or exceed the limits.

    A setting may itself be a call, which is checked in the same way.
    """
    kind: type = type(instance)
    for one in fields_of(kind).values():
        value = getattr(instance, one.name)
        if one.setting.outside and value != one.default:
            raise InputError(f"{one.name} names a file or a model, which requests cannot do: leave it out.")
        for part in _parts(value):
            if isinstance(part, int | float) and abs(part) > limits.passes:
                raise InputError(f"{one.name} is {part:.6g}, and this server allows {limits.passes:,}.")
            if isinstance(part, str) and "(" in part:
                name = part.partition("(")[0].strip()
                catalogue: Any = METRICS if name in METRICS.names else METHODS
                check_call(catalogue.create(part), limits)


def check_size(body: PredictBody | CiteBody, limits: Limits, texts: str = "the text has") -> None:
    """Raise InputError for a request with too many characters in `texts`, or too many new tokens."""
    if (size := characters(body)) > limits.characters:
        raise InputError(f"{texts} {size:,} characters, and this server reads {limits.characters:,}.")
    if (body.max_new_tokens or 0) > limits.new_tokens:
        raise InputError(f"max_new_tokens is {body.max_new_tokens}, and this server allows {limits.new_tokens}.")


def _text(request: ModelRequest) -> Any:
    """The text of a request that joined this one."""
    return given(cast("PredictBody", request.body).text)


def _parts(value: object) -> Iterator[object]:
    """A setting's value; for a list or a table, every value in it."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, tuple | list | set | frozenset):
        for item in value:
            yield from _parts(item)
    else:
        yield value


def _plain(explanation: object) -> object:
    """The explanation as JSON values, or those of each target."""
    return (
        [one.to_dict() for one in explanation]
        if isinstance(explanation, list)
        else cast("Explanation", explanation).to_dict()
    )


def json_of(value: object) -> bytes:
    """An answer in JSON. Raises InputError if it is too long."""
    answer = dump(value).encode()
    if len(answer) > ANSWER:
        raise InputError(
            f"the response has {len(answer):,} bytes, and this server sends at most {ANSWER:,}: request less."
        )
    return answer


def _predicted(e: Explanation) -> dict[str, object]:
    """The fields of an explanation about the prediction, under the same names."""
    known = e.to_dict()
    names = ("model", "text", "outputs", "classes", "probabilities", "truncated", "answer", "place")
    prediction: dict[str, object] = {name: known[name] for name in names if name in known}
    return {**prediction, "prediction": e.prediction, "decided": list(e.decided), "value": e.number}
