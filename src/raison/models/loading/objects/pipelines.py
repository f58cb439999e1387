"""transformers pipelines as models: by model and tokenizer if these give the same outputs, otherwise as functions."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from transformers import PreTrainedTokenizerBase
from transformers.pipelines.base import Pipeline
from transformers.pipelines.fill_mask import FillMaskPipeline
from transformers.pipelines.text_classification import ClassificationFunction, TextClassificationPipeline
from transformers.pipelines.text_generation import TextGenerationPipeline
from transformers.pipelines.token_classification import AggregationStrategy, TokenClassificationPipeline
from transformers.pipelines.zero_shot_classification import ZeroShotClassificationPipeline

from raison.core.errors import InputError, LoadError
from raison.core.inputs.unit import Text
from raison.core.model import LanguageModel
from raison.models.adapters.places.masks import filling
from raison.models.adapters.places.tags import tagging
from raison.models.adapters.writing.generator import Generator
from raison.models.loading.objects.functions import PROBES, Agreement, AskedFunction, black_box_of
from raison.models.loading.objects.output_check import Adapt, checked

_ZERO_SHOT = "a zero-shot pipeline runs its model once per label, and is used as a function"


def from_pipeline(pipe: Pipeline, agreed: Agreement, adapt: Adapt) -> LanguageModel | Generator:
    """The adapter of a pipeline. Raises LoadError for a task that is not supported.

    To support another task, add a case here.
    """
    if isinstance(pipe, ZeroShotClassificationPipeline):
        return _zero_shot(pipe, agreed)
    if agreed.classes is not None or agreed.multi_label:
        raise InputError(
            "classes= and multi_label= apply to functions and zero-shot pipelines, and this pipeline has its own: "
            "leave them out."
        )
    if isinstance(pipe, TextClassificationPipeline):
        return _classification(pipe, agreed, adapt)
    if isinstance(pipe, TextGenerationPipeline):
        return _generation(pipe, adapt)
    if isinstance(pipe, TokenClassificationPipeline):
        return _tags(pipe)
    if isinstance(pipe, FillMaskPipeline):
        return filling(pipe.model, _tokenizer_of(pipe), agreed.name or _name_of(pipe))
    raise LoadError(
        f"a pipeline for {pipe.task or type(pipe).__name__} is not supported: use one for text-classification, "
        "zero-shot-classification, text-generation, token-classification or fill-mask."
    )


def _classification(pipe: TextClassificationPipeline, agreed: Agreement, adapt: Adapt) -> LanguageModel:
    config = pipe.model.config
    numbered = sorted((int(number), str(label)) for number, label in (config.id2label or {}).items())
    labels = tuple(label for _, label in numbered)
    function = partial(_scores, pipe, labels)
    model = checked(lambda: adapt(pipe.model, _tokenizer_of(pipe)), function, PROBES)
    if isinstance(model, LanguageModel):
        most = _most_tokens(pipe)
        if most is None or (model.max_tokens is not None and model.max_tokens <= most):
            return model
        model = f"the pipeline reads at most {most} tokens of a text, and the model more"
    # One output with a sigmoid is a label if its model was trained so, and otherwise a number.
    multi_label = config.problem_type == "multi_label_classification" or (_applies_sigmoid(pipe) and len(labels) > 1)
    agreement = replace(agreed, multi_label=multi_label)
    return black_box_of(AskedFunction(function, agreed.name or _name_of(pipe), labels, model), agreement)


def _most_tokens(pipe: TextClassificationPipeline) -> int | None:
    """The length to which the pipeline was told to cut texts; its settings are not public."""
    settings = pipe._preprocess_params
    most: int | None = settings.get("max_length") if settings.get("truncation") else None
    return most


def _applies_sigmoid(pipe: TextClassificationPipeline) -> bool:
    return pipe._postprocess_params.get("function_to_apply") == ClassificationFunction.SIGMOID


def _scores(pipe: TextClassificationPipeline, labels: Sequence[str], texts: Sequence[Text]) -> list[list[float]]:
    given = [text if isinstance(text, str) else {"text": text[0], "text_pair": text[1]} for text in texts]
    ask: Callable[..., Any] = pipe
    scores = [{one["label"]: one["score"] for one in row} for row in ask(given, top_k=None)]
    return [[row[label] for label in labels] for row in scores]


def _zero_shot(pipe: ZeroShotClassificationPipeline, agreed: Agreement) -> LanguageModel:
    if agreed.classes is None:
        raise InputError(
            "a zero-shot pipeline needs the labels to choose from: load(pipeline, classes=['sports', 'politics'])."
        )
    labels = [str(name) for name in agreed.classes]
    function = partial(_shares, pipe, labels, agreed.multi_label)
    return black_box_of(AskedFunction(function, agreed.name or _name_of(pipe), labels, _ZERO_SHOT), agreed)


def _shares(
    pipe: ZeroShotClassificationPipeline, labels: Sequence[str], multi_label: bool, texts: Sequence[str]
) -> list[list[float]]:
    # Such a pipeline refuses an empty text but takes a blank one.
    ask: Callable[..., Any] = pipe
    ranked = ask([text or " " for text in texts], candidate_labels=list(labels), multi_label=multi_label)
    rows = [dict(zip(row["labels"], row["scores"], strict=True)) for row in ranked]
    return [[row[label] for label in labels] for row in rows]


def _generation(pipe: TextGenerationPipeline, adapt: Adapt) -> LanguageModel | Generator:
    model = adapt(pipe.model, _tokenizer_of(pipe))
    if isinstance(model, Generator):
        for text in PROBES:
            # A pipeline's settings, such as a prefix, are not public.
            read = pipe.preprocess(text, **pipe._preprocess_params)["input_ids"][0].tolist()
            if read != list(model.prompt(text).ids):
                raise LoadError(
                    f"the pipeline of {model.name} does not read prompts as its tokenizer does (because of a prefix or "
                    "other settings): load(pipeline.model, pipeline.tokenizer) explains the model without them."
                )
    return model


def _tags(pipe: TokenClassificationPipeline) -> LanguageModel:
    """With the pipeline's own way from tokens to entities; its settings are not public."""
    strategy = pipe._postprocess_params.get("aggregation_strategy", AggregationStrategy.NONE)
    if pipe._preprocess_params.get("is_split_into_words") or pipe._preprocess_params.get("tokenizer_params"):
        raise LoadError(
            f"the pipeline of {_name_of(pipe)} reads words or overlapping windows (is_split_into_words, stride): "
            "load(pipeline.model, pipeline.tokenizer) explains the model on whole texts."
        )
    return tagging(pipe.model, _tokenizer_of(pipe), _name_of(pipe), strategy.value)


def _name_of(pipe: Pipeline) -> str:
    return str(pipe.model.config.name_or_path or type(pipe.model).__name__)


def _tokenizer_of(pipe: Pipeline) -> PreTrainedTokenizerBase:
    if not isinstance(pipe.tokenizer, PreTrainedTokenizerBase):
        raise InputError(
            f"the pipeline of {_name_of(pipe)} has no tokenizer, so its model cannot read text: give a pipeline with "
            "one."
        )
    return pipe.tokenizer
