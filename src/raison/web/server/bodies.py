"""The bodies of requests, as OpenAPI describes them. The library checks their values."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from raison.core.errors import InputError
from raison.explaining.settings import DRAWS

Name = Annotated[str, Field(max_length=500)]
JsonRange = list[int]
Pair = Annotated[list[int], Field(min_length=2, max_length=2)]
Class = str | int
Seed = Annotated[int, Field(ge=0, lt=1 << 63, description="a whole number of at least 0")]
NewTokens = Annotated[int | None, Field(ge=1, description="a number of tokens, at least 1")]


class Body(BaseModel):
    """The JSON of a request: exactly these fields with exactly these types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Message(Body):
    """A turn of a chat."""

    role: Name
    content: str


Text = Annotated[
    str | list[Message] | list[str | list[str]],
    Field(
        description="a string; a list of two strings (a pair) or of three; a query and its documents "
        '["query", ["document", ...]]; or a chat, a list of {"role", "content"}'
    ),
]


class PredictBody(Body):
    """What POST /api/predict takes."""

    model: Annotated[Name, Field(description="the name of a model of GET /api/models")]
    text: Text
    truncate: Annotated[bool, Field(description="whether to read only the beginning of a text that is too long")] = (
        False
    )
    max_new_tokens: NewTokens = None


class ExplainBody(PredictBody):
    """What POST /api/explain takes: the keywords of raison.explain."""

    method: Annotated[Name, Field(description='a name or a call: "kernel_shap(samples=512)"')] = "auto"
    unit: Annotated[Name | None, Field(description="token, word, sentence or part")] = None
    units: Annotated[
        Name | list[JsonRange] | dict[str, JsonRange] | None,
        Field(description='spans [[start, end], ...], {name: [start, end], ...}, or "first", "second", "third"'),
    ] = None
    language: Annotated[Name | None, Field(description="of sentences, such as de")] = None
    target: Annotated[
        Class | list[Class | list[Class | None] | None] | None,
        Field(description='a label or its number, two of them for this and not that, or "each"'),
    ] = None
    of: Annotated[Name | None, Field(description="probability, logit, log_odds, margin or log_probability")] = None
    removal: Annotated[Name | None, Field(description="one of the model's removals")] = None
    seed: Seed = 0
    precision: Annotated[Name, Field(description="float32 or bfloat16")] = "float32"
    select: Annotated[Name | None, Field(description="the metric that chooses among a method's maps")] = None
    budget: Annotated[int | None, Field(ge=2, description="the passes that auto may take")] = None
    output: Annotated[str | None, Field(description="the output of a language model to explain")] = None
    contrast: Annotated[
        Class | list[Class] | None, Field(description="a word or a token's number, or one for each output token")
    ] = None
    earlier: Annotated[bool, Field(description="whether earlier output tokens get scores, too")] = False
    threshold: Annotated[float | None, Field(ge=0, le=1, description="a probability")] = None


class CiteBody(Body):
    """What POST /api/cite takes: the keywords of raison.cite."""

    model: Annotated[Name, Field(description="the name of a model of GET /api/models that writes")]
    question: Annotated[
        str | list[Message], Field(description='a question, or a conversation, a list of {"role", "content"}')
    ]
    sources: Annotated[
        dict[Name, str] | list[str] | None,
        Field(description='texts by id, {"id": "text", ...}, or a list of them; null for those of a conversation'),
    ] = None
    answer: Annotated[str | None, Field(description="the answer to explain; null for the model's own")] = None
    statements: Annotated[
        list[Pair] | None, Field(description="spans [[start, end], ...] of the answer; null for its sentences")
    ] = None
    template: Annotated[str | None, Field(description="plain, chat, or a text with {sources} and {question}")] = None
    method: Annotated[Name, Field(description='a name or a call: "context_cite(ablations=32)"')] = "auto"
    within: Annotated[Literal["sentence", "source"], Field(description="sentence or source")] = "sentence"
    removal: Annotated[Name, Field(description="delete, or a token in the place of absent text, such as ellipsis")] = (
        "delete"
    )
    seed: Seed = 0
    max_new_tokens: NewTokens = None
    draws: Annotated[int, Field(ge=0, le=256, description="a whole number from 0 to 256")] = DRAWS


def characters(body: PredictBody | CiteBody) -> int:
    """The characters of a request's texts."""
    if isinstance(body, CiteBody):
        sources = body.sources or []
        texts = [*sources, *sources.values()] if isinstance(sources, dict) else sources
        return _length(body.question) + _length([body.answer or "", body.template or "", *texts])
    output = body.output or "" if isinstance(body, ExplainBody) else ""
    return len(output) + _length(body.text)


def given(text: Any) -> Any:
    """A text as raison.explain takes it: pairs are tuples, and so is a query with its documents. Raises InputError."""
    if isinstance(text, str):
        return text
    if text and all(isinstance(part, Message) for part in text):
        return [{"role": message.role, "content": message.content} for message in text]
    if len(text) in (2, 3) and all(isinstance(part, str) for part in text):
        return tuple(text)
    if len(text) == 2 and isinstance(text[0], str):
        return text[0], list(text[1])
    raise InputError(f"text cannot be {text!r:.60}: give {described('text')}.")


def tupled(value: Any) -> Any:
    """Lists as tuples, to any depth: a target of several parts."""
    return tuple(map(tupled, value)) if isinstance(value, list) else value


def tupled_spans(units: Any) -> Any:
    """Spans as raison.explain takes them."""
    if isinstance(units, dict):
        return {name: tuple(span) for name, span in units.items()}
    return [tuple(span) for span in units] if isinstance(units, list) else units


def described(name: str, body: type[BaseModel] = ExplainBody) -> str:
    """The allowed values of a field of a body, to follow "give"."""
    field = body.model_fields.get(name)
    return "another" if field is None or field.description is None else field.description


def _length(text: Any) -> int:
    if isinstance(text, str):
        return len(text)
    return sum(len(part.content) if isinstance(part, Message) else _length(part) for part in text)
