"""Embedding models: the similarity of two texts, each read by itself."""

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.errors import LoadError
from raison.core.targets.choices import Measure
from raison.models.adapters.classifier import Classifier
from raison.models.adapters.task_setup import TaskSetup
from raison.models.passes.outputs.vectors import CLASSES, TextVectors, VectorHead, VectorSimilarity
from raison.models.tokens.encoder import TextEncoder
from raison.models.tokens.max_tokens import max_tokens
from raison.models.tokens.multi_input import MultiInputEncoder
from raison.models.tokens.token_rows import padding_id

APART = ((0,), (1,))
"""Two strings, each encoded separately."""


def similarity(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, name: str, vectors: TextVectors, measure: Measure
) -> Classifier:
    """The adapter of a transformers model without a head, whose texts are pairs. Raises LoadError."""
    kind = type(model).__name__
    if model.base_model is not model:
        raise LoadError(f"'{name}' is a {kind}, which has a head: give the model below it (model.base_model).")
    if model.config.is_encoder_decoder:
        raise LoadError(
            f"'{name}' is a {kind}, which also has a decoder: give its encoder alone, such as a T5EncoderModel."
        )
    inner = TextEncoder(tokenizer, max_tokens(model.config, tokenizer.model_max_length))
    encoder = MultiInputEncoder(
        inner, APART, padding_id(tokenizer), "a pair of two strings, whose similarity is explained"
    )
    head = VectorHead(CLASSES, multi_label=False, vectors=vectors)
    return Classifier(model, tokenizer, name, TaskSetup(encoder, head, join=VectorSimilarity(measure), strings=2))
