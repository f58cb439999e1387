"""Models in memory other than transformers models: functions, predictors, pipelines, sentence-transformers."""

import inspect
from typing import Any

from torch import nn

from raison.core.errors import InputError
from raison.core.model import LanguageModel
from raison.models.adapters.writing.generator import Generator
from raison.models.loading.objects.functions import Agreement, from_function, from_predictor, predicts
from raison.models.loading.objects.output_check import Adapt


def is_plain_model(model: object) -> bool:
    """Whether it is a torch model; one of sentence-transformers, which wraps such a model, is not."""
    return isinstance(model, nn.Module) and not _is_of(model, "sentence_transformers")


def is_pipeline(model: object) -> bool:
    """Whether it is a pipeline of transformers."""
    return _is_of(model, "transformers.pipelines.base")


def from_object(model: Any, agreed: Agreement, adapt: Adapt) -> LanguageModel | Generator:
    """The adapter of anything but a torch model; `adapt` makes that of a pipeline's model and tokenizer.

    Packages are recognised by the module names of classes, so that none has to be imported.
    """
    if _is_of(model, "sentence_transformers"):
        from raison.models.loading.objects.sentences import from_sentence_transformers

        return from_sentence_transformers(model, agreed, adapt)
    if is_pipeline(model):
        from raison.models.loading.objects.pipelines import from_pipeline

        return from_pipeline(model, agreed, adapt)
    if inspect.isclass(model):
        raise InputError(f"{model.__name__} is a class: give an instance of it, or a function.")
    if predicts(model):
        return from_predictor(model, agreed)
    if callable(model):
        return from_function(model, agreed)
    raise InputError(
        f"a {type(model).__name__} is not a model: give a demo name, a Hub id, a folder, a transformers model with its "
        "tokenizer, a pipeline, an object with predict_proba, or a function of a list of texts. (A predictor without "
        "predict_proba has another method that takes texts: give that as the function.)"
    )


def _is_of(model: object, module: str) -> bool:
    """Whether a class of the object, or one that it inherits from, is of the module or of one inside it."""
    return any(f"{cls.__module__}.".startswith(f"{module}.") for cls in type(model).__mro__)
