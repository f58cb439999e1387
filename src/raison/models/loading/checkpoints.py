"""Checkpoints and adapters by name or folder: the kind of model that each holds, and missing parts."""

import os
from pathlib import Path

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
from transformers import PreTrainedTokenizerBase as Tokenizer

from raison.core.errors import LoadError, first_line
from raison.models.loading.pretrained import (
    adapter_base,
    adapter_tensors,
    lacking,
    merged,
    read_checkpoint,
    read_config,
    read_tokenizer,
    read_whole,
    read_with_new_head,
)
from raison.models.loading.ready_made import zoo
from raison.models.loading.t5_encoder import ARCHITECTURE, T5EncoderForSequenceClassification

HEAD_WEIGHTS = ("score.weight", "classifier.weight", "classifier.out_proj.weight")
"""Last layers of classification heads; their shape gives an adapter's number of classes."""
ANSWER_WEIGHTS = "qa_outputs.weight"
"""The head of question answering models, which identifies an adapter of one."""

_OTHER_HEADS = ("ForMultipleChoice", "ForNextSentencePrediction", "ForPreTraining")
"""Heads whose weights may have the same names as a classifier's but another meaning."""

_AT_PLACES: dict[str, type] = {
    "ForTokenClassification": AutoModelForTokenClassification,
    "ForMaskedLM": AutoModelForMaskedLM,
}
_WRITERS = ("ForConditionalGeneration", "MTModel")
"""Generative encoder-decoders."""
_LANGUAGE_MODELS: tuple[type, ...] = (AutoModelForCausalLM, AutoModelForSeq2SeqLM)


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
    if prompted or architecture.endswith(("ForCausalLM", "LMHeadModel")):
        return AutoModelForCausalLM
    for ending, kind in _AT_PLACES.items():
        if architecture.endswith(ending):
            return kind
    if architecture == ARCHITECTURE:
        return T5EncoderForSequenceClassification
    return (
        AutoModelForQuestionAnswering if "ForQuestionAnswering" in architecture else AutoModelForSequenceClassification
    )


def foreign_adapter(folder: Path, placing: dict[str, object], prompted: bool) -> tuple[PreTrainedModel, Tokenizer]:
    """A PEFT adapter from elsewhere: its head gives the number of classes, its config the base model."""
    base = adapter_base(folder)
    saved = adapter_tensors(folder)
    answers = any(key.endswith(ANSWER_WEIGHTS) for key in saved)
    heads = [tensor for key, tensor in saved.items() if key.endswith((ANSWER_WEIGHTS, *HEAD_WEIGHTS))]
    if not base:
        raise LoadError(no_head(str(folder), "the adapter names no base model"))
    try:
        if heads:
            kind = AutoModelForQuestionAnswering if answers else AutoModelForSequenceClassification
            model = read_with_new_head(kind, base, num_labels=len(heads[-1]), **placing)
        elif (written := _kind(_config(base), prompted)) in _LANGUAGE_MODELS:
            # A language model's head belongs to its base.
            model = read_whole(written, base, **placing)
        else:
            model = None
    except LoadError as error:
        raise LoadError(f"{error} It is the base of the adapter {folder}.") from error.__cause__
    if model is None:
        raise LoadError(
            no_head(str(folder), "the adapter contains none, and its base is not a generative language model")
        )
    has_tokenizer = (folder / "tokenizer_config.json").is_file()
    return merged(model, folder), read_tokenizer(folder if has_tokenizer else base)


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
