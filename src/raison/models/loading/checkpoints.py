"""Checkpoints by name or folder: the kind of model that each holds, and missing parts."""

import os

from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForQuestionAnswering,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    PreTrainedConfig,
    PreTrainedModel,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from raison.core.errors import LoadError, first_line
from raison.models.loading.pretrained import lacking, read_checkpoint, read_config
from raison.models.loading.ready_made import zoo
from raison.models.loading.t5_encoder import ARCHITECTURE, T5EncoderForSequenceClassification

_OTHER_HEADS = ("ForMultipleChoice", "ForNextSentencePrediction", "ForPreTraining")
"""Heads whose weights may have the same names as a classifier's but another meaning."""

_AT_PLACES: dict[str, type] = {
    "ForTokenClassification": AutoModelForTokenClassification,
    "ForMaskedLM": AutoModelForMaskedLM,
}
_WRITERS = ("ForConditionalGeneration", "MTModel")
"""Generative encoder-decoders."""


def pretrained(name: str, placing: dict[str, object], prompted: bool) -> PreTrainedModel:
    """A whole checkpoint; one without a trained head is refused.

    A `prompted` checkpoint is a causal language model. Raises LoadError.
    """
    config = _config(name)
    kind = _kind(config, prompted)
    try:
        checkpoint = read_checkpoint(kind, name, config=config, **placing)
    except LoadError as error:
        if isinstance(error.__cause__, ValueError) and kind.__name__ in str(error.__cause__):
            message = _no_writing if prompted else no_head
            raise LoadError(message(name, f"transformers has none for the type '{config.model_type}'")) from None
        raise
    if checkpoint.missing_below_head:
        raise LoadError(lacking(name, checkpoint.missing))
    if checkpoint.missing:
        message = _no_writing if prompted else _no_answers if kind is AutoModelForQuestionAnswering else no_head
        raise LoadError(message(name, f"the checkpoint lacks {', '.join(checkpoint.missing[:4])}"))
    return checkpoint.model


def _kind(config: PreTrainedConfig, prompted: bool) -> type:
    architecture = (config.architectures or [""])[0]
    if architecture.endswith(_OTHER_HEADS):
        raise LoadError(
            f"'{config.name_or_path}' is a {architecture}, which does not classify texts: give a model for sequence "
            "classification, extractive question answering or causal language modelling."
        )
    if config.is_encoder_decoder and architecture.endswith(_WRITERS):
        return AutoModelForSeq2SeqLM
    if prompted or architecture.endswith(("ForCausalLM", "LMHeadModel")) or _writes_text(config, architecture):
        return AutoModelForCausalLM
    for ending, kind in _AT_PLACES.items():
        if architecture.endswith(ending):
            return kind
    if architecture == ARCHITECTURE:
        return T5EncoderForSequenceClassification
    return (
        AutoModelForQuestionAnswering if "ForQuestionAnswering" in architecture else AutoModelForSequenceClassification
    )


def _writes_text(config: PreTrainedConfig, architecture: str) -> bool:
    """Whether a model that also reads images has a language model of its own, which reads only text."""
    known = MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.get(config.model_type, "")
    return architecture.endswith(_WRITERS) and str(known).endswith("ForCausalLM")


def _config(name: str) -> PreTrainedConfig:
    try:
        return read_config(name)
    except LoadError as error:
        reason = first_line(error.__cause__ or error)
        if os.path.isdir(name):
            raise LoadError(f"the folder '{name}' holds no model: {reason}") from None
        known = ", ".join(zoo.names())
        # If the Hub did not answer, the message already says so.
        hub = str(error).partition("': ")[2].rstrip(".") if "the Hub (" in str(error) else f"the Hub answered: {reason}"
        raise LoadError(f"no model '{name:.80}': not a demo model ({known}), not a folder, and {hub:.300}") from None


def no_head(name: str, why: str) -> str:
    """The error text for a model without a classification head."""
    reason = f" ({why})" if why else ""
    return (
        f"'{name}' has no trained classification head{reason}: give a model that was fine-tuned for sequence "
        "classification, or train one with `raison train classifier`. A model of sentence vectors is explained with "
        "raison.load(..., similarity='cosine') (--similarity cosine)."
    )


def _no_writing(name: str, why: str) -> str:
    return (
        f"'{name}' has no trained head of a language model ({why}), and a prompt is for causal language models: leave "
        "the prompt out, or give a language model."
    )


def _no_answers(name: str, why: str) -> str:
    return (
        f"'{name}' has no trained question answering head ({why}): give a model that was fine-tuned for extractive "
        "question answering (SQuAD)."
    )
