"""Requests of the component to a generative model, read from JSON, and answered by models of this process."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from raison.core.errors import DataError, InputError, UnknownNameError
from raison.core.inputs.unit import Granularity, check_unit
from raison.core.results.generation import GenerationExplanation
from raison.core.settings.reading import Fields
from raison.explaining.explain import explain
from raison.explaining.generation import NEW_TOKENS
from raison.explaining.given_texts import InputOptions
from raison.models.adapters.writing.writer import Writer
from raison.web.component.explain_request import model_of, request_fields
from raison.web.component.exports import taken
from raison.web.component.generation_view import output_seen, span_seen, token_seen

_FIELDS = ("model", "text", "method", "unit", "of", "removal", "seed", "output", "max_new_tokens", "contrast")

VIEWS = {"view/output": output_seen, "view/span": span_seen, "view/token": token_seen, "view/file": taken}
"""Requests about an explained answer, by their names."""

AskedPrompt = str | tuple[tuple[str, str], ...]
"""A prompt, or the roles and contents of a chat's messages."""


@dataclass(frozen=True, slots=True)
class WritingRequest:
    """A request for one explained answer; `output` None is the model's own, of limited length."""

    model: str
    text: AskedPrompt
    method: str = "auto"
    unit: Granularity = "word"
    of: str | None = None
    removal: str | None = None
    seed: int = 0
    output: str | None = None
    max_new_tokens: int | None = None
    contrast: tuple[str | int, ...] | None = None

    @classmethod
    def read(cls, body: Mapping[str, object]) -> "WritingRequest":
        """From a JSON object. Raises a RaisonError in one line."""
        known = request_fields(body, _FIELDS)
        for name in ("of", "removal", "output"):
            known.optional_string(name)
        if "seed" in known.data:
            known.whole("seed")
        if known.data.get("max_new_tokens") is not None:
            known.whole("max_new_tokens", 1)
        values = {name: known.data[name] for name in _FIELDS if name in known.data}
        values |= {"text": asked_text(known), "unit": check_unit(known.data["unit"]), "contrast": _contrast(known)}
        return cls(**values)


def asked_text(fields: Fields) -> AskedPrompt:
    """The prompt or the chat of a request. Raises DataError."""
    text = fields.data["text"]
    if isinstance(text, str):
        return text
    turns = []
    for message in list(fields.objects("text")):
        message.need(["role", "content"])
        turns.append((message.string("role"), message.string("content")))
    return tuple(turns)


def written(model: Writer, request: WritingRequest) -> GenerationExplanation:
    """The requested explained answer. Raises RaisonErrors."""
    contrast = request.contrast
    explanation = explain(
        cast("Any", model),
        cast("Any", plain(request.text)),
        request.method,
        unit=request.unit,
        of=request.of,
        removal=request.removal,
        seed=request.seed,
        output=request.output,
        max_new_tokens=request.max_new_tokens,
        contrast=None if contrast is None else list(contrast),
        progress=False,
    )
    return cast("GenerationExplanation", explanation)


def answered(models: Mapping[str, Writer], ask: str, body: Mapping[str, object]) -> dict[str, object]:
    """The answer to any request of the component to generative models. Raises RaisonErrors."""
    if ask in VIEWS:
        return VIEWS[ask](body)
    if ask not in ("explain", "predict"):
        raise UnknownNameError("question", ask, ["explain", "predict", *VIEWS])
    request = WritingRequest.read(body)
    model = model_of(models, request.model)
    if ask == "explain":
        return written(model, request).to_dict()
    return continued(model, plain(request.text), request.max_new_tokens)


def continued(model: Writer, text: Any, tokens: int | None) -> dict[str, object]:
    """The model's output for a prompt or a chat, in plain JSON values."""
    given, _ = one_prompt(InputOptions(), text)
    prompt = model.prompt(given)
    output = model.continuation(prompt, tokens or NEW_TOKENS)
    return {"model": model.name, "outputs": "text", "prompt": prompt.text, "output": output.text}


def one_prompt(reading: InputOptions, text: Any) -> tuple[Any, Granularity]:
    """A single prompt or chat as a model that writes takes it, and the unit. Raises InputError for anything else."""
    prompts = reading.prompts(text)
    if not prompts.single:
        raise InputError(f"text cannot be {text!r:.60}: give a prompt, or a list of messages with role and content.")
    return prompts.texts[0], prompts.unit


def plain(text: AskedPrompt) -> str | list[dict[str, str]]:
    """A prompt or a chat as raison.explain takes it."""
    return text if isinstance(text, str) else [{"role": role, "content": content} for role, content in text]


def _contrast(fields: Fields) -> tuple[str | int, ...] | None:
    if fields.data.get("contrast") is None:
        return None
    items = fields.items("contrast")
    if not all(isinstance(item, str) or type(item) is int for item in items):
        raise DataError("not a request: contrast is a list of words and of tokens' numbers, one for each output token.")
    return items
