"""Model objects of sentence-transformers."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from sentence_transformers import CrossEncoder, SentenceTransformer
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.errors import InputError, LoadError, UnknownNameError
from raison.core.inputs.unit import Text
from raison.core.model import LanguageModel
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.similarity import similarity
from raison.models.adapters.writing.generator import Generator
from raison.models.loading.embedders import PROMPTED, Module, measure_of, vectors_of
from raison.models.loading.objects.functions import PAIR_PROBES, Agreement, AskedFunction, black_box_of
from raison.models.loading.objects.output_check import Adapt, checked
from raison.models.passes.outputs.heads import ACTIVATIONS, ClassHead
from raison.models.passes.outputs.vectors import CLASSES


def from_sentence_transformers(model: object, agreed: Agreement, adapt: Adapt) -> LanguageModel:
    """A cross-encoder as a classifier or scorer of pairs; an embedding model as the similarity of pairs.

    Raises LoadError for other models.
    """
    if agreed.classes is not None or agreed.multi_label:
        raise InputError(
            f"classes= and multi_label= apply to functions, and a {type(model).__name__} has its own: leave them out."
        )
    if isinstance(model, CrossEncoder):
        return _cross_encoder(model, agreed, adapt)
    if isinstance(model, SentenceTransformer):
        return _embedder(model, agreed)
    raise LoadError(
        f"a {type(model).__name__} is not supported: give a function of pairs that returns their similarity "
        "(load(function, classes=['similarity'], pairs=True))."
    )


def _cross_encoder(model: CrossEncoder, agreed: Agreement, adapt: Adapt) -> LanguageModel:
    inner = model.model
    if inner is None:
        raise LoadError("this CrossEncoder has no transformers model: give a function of pairs, model.predict.")
    adapted = checked(lambda: adapt(inner, model.tokenizer), model.predict, PAIR_PROBES)
    if isinstance(adapted, str):
        # The number finally goes through the object's activation function, a sigmoid by default.
        last = type(model.activation_fn).__name__
        adapted = checked(lambda: _through(adapt(inner, model.tokenizer), last), model.predict, PAIR_PROBES)
    if isinstance(adapted, LanguageModel):
        return adapted
    if model.num_labels != 1:
        raise LoadError(
            f"this CrossEncoder gives {model.num_labels} numbers that are neither its model's logits nor their "
            "probabilities: give a function of pairs that returns probabilities (load(function, classes=[...], "
            "pairs=True))."
        )
    name = agreed.name or str(inner.config.name_or_path or type(inner).__name__)
    agreement = Agreement(pairs=True, batch=agreed.batch, name=name)
    return black_box_of(AskedFunction(model.predict, name, ("score",), adapted), agreement)


def _through(model: LanguageModel | Generator, activation: str) -> LanguageModel | Generator:
    """The same model whose one number goes through a function of torch.nn. Raises LoadError."""
    if not isinstance(model, Classifier) or model.outputs != "number" or not isinstance(model.head, ClassHead):
        raise LoadError("its numbers are not those of its model and tokenizer")
    if activation not in ACTIVATIONS:
        raise LoadError(f"its number goes through {activation}, which raison does not support")
    return model.over(model.model, replace(model.use, head=replace(model.head, activation=activation)))


def _embedder(model: SentenceTransformer, agreed: Agreement) -> LanguageModel:
    """The adapter of its transformers model if that gives the same similarities, otherwise a function of pairs."""
    modules: list[Any] = list(model.children())
    inner, tokenizer = getattr(modules[0], "auto_model", None), model.tokenizer
    own_name = inner.config.name_or_path if isinstance(inner, PreTrainedModel) else None
    name = agreed.name or own_name or type(model).__name__

    encoders = _encoders(model)

    def ask(pairs: Sequence[Text]) -> Any:
        sides = zip(*pairs, strict=True)
        vectors = [encode([*side], show_progress_bar=False) for encode, side in zip(encoders, sides, strict=True)]
        return model.similarity_pairwise(*vectors)

    def adapted() -> LanguageModel:
        if not isinstance(inner, PreTrainedModel) or not isinstance(tokenizer, PreTrainedTokenizerBase):
            raise LoadError(f"its first module, a {type(modules[0]).__name__}, has no transformers model")
        try:
            vectors = vectors_of([_described(module) for module in modules[1:]])
            return similarity(inner, tokenizer, name, vectors, measure_of(model.similarity_fn_name))
        except UnknownNameError as error:
            raise LoadError(str(error)) from None

    model_or_reason = checked(adapted, ask, PAIR_PROBES)
    if isinstance(model_or_reason, LanguageModel):
        return model_or_reason
    return black_box_of(
        AskedFunction(ask, name, CLASSES, model_or_reason), Agreement(pairs=True, batch=agreed.batch, name=name)
    )


def _encoders(model: SentenceTransformer) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The functions of a pair's two texts: with prompts for queries and documents, the first text is the query."""
    if any(model.prompts.get(name) for name in PROMPTED):
        return model.encode_query, model.encode_document
    return model.encode, model.encode


def _described(module: nn.Module) -> Module:
    config: dict[str, Any] = getattr(module, "get_config_dict", dict)()
    weights = {name: tensor.detach() for name, tensor in module.state_dict().items()}
    return Module(type(module).__name__, config, weights)
