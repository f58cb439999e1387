"""The capabilities of a classifier, derived from its architecture, its head and its layers."""

from collections.abc import Container

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.capabilities.answer_attention import AnswerAttention
from raison.core.capabilities.answer_lengths import AnswerLengths
from raison.core.capabilities.asked_again import AskedAgain
from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.attention_layers import AttentionLayers
from raison.core.capabilities.attention_paths import ReplaceableAttention
from raison.core.capabilities.decomposition import Anatomy
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.hidden_states import HiddenStates
from raison.core.capabilities.other_wordings import OtherWordings
from raison.core.capabilities.rules import BackwardRules
from raison.core.capabilities.step_logits import StepLogits
from raison.core.capabilities.token_predictions import TokenPredictions
from raison.core.capability import Capability
from raison.core.errors import UnsupportedError
from raison.core.targets.choices import Pooled
from raison.models.adapters.task_setup import TaskSetup
from raison.models.anatomy.answer_rows import TokenAttention
from raison.models.anatomy.decomposition import ModelAnatomy, can_take_apart
from raison.models.anatomy.multi_input_attention import AnatomyOfReads, SeveralReads
from raison.models.anatomy.stacked_attention import OneStack, TwoStacks
from raison.models.anatomy.tapped_attention import TappedAttention
from raison.models.families import Pooling
from raison.models.gradients.missing_gradients import without_gradient
from raison.models.gradients.path_gradients import RowGradients
from raison.models.gradients.rules.ruled_gradients import RuledPasses
from raison.models.gradients.word_embeddings import TableEmbeddings
from raison.models.passes.forward import ForwardPasses
from raison.models.passes.hidden_states import LayerMeans
from raison.models.passes.outputs.heads import ClassHead, Head, class_logits
from raison.models.passes.outputs.readout import Readout, TokenReadout
from raison.models.passes.outputs.vectors import VectorHead
from raison.models.passes.removal import Removals
from raison.models.passes.rerun import Reruns
from raison.models.stack.eval_mode import evaluating
from raison.models.stack.tap import attention_modules
from raison.models.stack.transformer import known_pooling

_APART = "its number compares texts that are encoded separately: no attention or hidden states span all of them"
_NO_RULE = "its number compares texts that are encoded separately, for which no backward rule is known"
_TWO_STACKS = "its number compares texts that are encoded separately, each by two stacks"
_LARGEST = "its vectors are max-pooled over all tokens: no single row of attention predicts them"
_NOT_OF_LAYERS = "its number is the difference between several passes' numbers, not the output of one chain of layers"
_OF_ATTENTION = (ReadableAttention, AttentionLayers, ReplaceableAttention, BackwardRules, Anatomy, AnswerAttention)
_OF_ONE_PASS = (ReadableAttention, ReplaceableAttention, StepLogits, HiddenStates)
_POOLINGS: dict[Pooled, Pooling] = {"mean": "mean", "cls": "first", "lasttoken": "last"}
"""The states that a vector is made of, if these are the same in every text."""


@torch.inference_mode()
def not_classifying(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> str | None:
    """Why a model class from outside transformers does not give one logit per label, in one pass of one word; None if
    it does.

    For transformers' own classes, the name has decided, and there is no further reason ("").
    """
    if type(model).__module__.startswith("transformers."):
        return ""
    ids = tokenizer("a", return_tensors="pt")["input_ids"].to(model.device)
    with evaluating(model):
        try:
            logits = class_logits(model(input_ids=ids))
        except (RuntimeError, TypeError, ValueError, LookupError) as error:
            return f"its forward pass fails with {type(error).__name__}: {' '.join(str(error).split()):.200}"
    if isinstance(logits, Tensor) and logits.shape == (1, model.config.num_labels):
        return None
    return f"its output is not one logit for each of its {model.config.num_labels} labels"


def withheld_from(model: PreTrainedModel, use: TaskSetup) -> dict[type[Capability], str]:
    """What the model lacks, each with the reason."""
    withheld = _not_in_architecture(model, use) | _not_in_weights(model, use.readout, use.head)
    if isinstance(use.head, ClassHead) and use.head.activation is not None:
        withheld[Anatomy] = f"its number goes through {use.head.activation} at the end, which is not part of a layer"
    return withheld if use.join is None else _of_reads(model, use.head) | withheld


def _of_reads(model: PreTrainedModel, head: Head) -> dict[type[Capability], str]:
    """What a model lacks if its texts are read separately."""
    withheld: dict[type[Capability], str] = {**dict.fromkeys(_OF_ONE_PASS, _APART), BackwardRules: _NO_RULE}
    if not isinstance(head, VectorHead):
        withheld[Anatomy] = _NOT_OF_LAYERS
    if model.config.is_encoder_decoder:
        return withheld | dict.fromkeys((AttentionLayers, Anatomy), _TWO_STACKS)
    if isinstance(head, VectorHead) and head.vectors.pooled == "max":
        return withheld | dict.fromkeys((AttentionLayers, Anatomy), _LARGEST)
    return withheld


def _not_in_architecture(model: PreTrainedModel, use: TaskSetup) -> dict[type[Capability], str]:
    readout, head = use.readout, use.head
    withheld: dict[type[Capability], str] = dict.fromkeys(
        (AnswerLengths, TokenPredictions), "it does not predict statements of several tokens"
    )
    if not isinstance(readout, TokenReadout):
        withheld[AnswerAttention] = "it does not generate answers"
    withheld[AskedAgain] = "it is deterministic, so asking again shows no noise"
    withheld[OtherWordings] = "it accepts any text, so other wordings need no preparation"
    if readout is None or use.border is not None:
        withheld[StepLogits] = "only causal models predict after each part of a text"
    if use.border is not None:
        withheld[HiddenStates] = (
            "its text and its output are processed by two stacks, whose hidden states do not share a space"
        )
        withheld[AnswerAttention] = (
            "its text and its output are processed by two stacks, whose attention is not one matrix"
        )
    try:
        attention_modules(model)
        if model.config.is_encoder_decoder:
            attention_modules(model.get_decoder())
    except UnsupportedError as refusal:
        hidden = "; ".join(refusal.reasons)
        return dict.fromkeys(_OF_ATTENTION, hidden) | withheld
    if not can_take_apart(model):
        withheld[Anatomy] = _no_parts(model)
    if model.config.is_encoder_decoder:
        # The encoder's attention has no row that predicts.
        reading = "its head reads the decoder, which sees the text through attention to the encoder's states"
        withheld |= dict.fromkeys((ReadableAttention, ReplaceableAttention), reading)
    # An answer is read from all positions of its context, and the upper layers cannot be re-run for a row alone.
    elif head.in_place:
        withheld[ReplaceableAttention] = "its prediction is made at positions of the text, not at one row"
    elif readout is not None and readout.branches != ((),):
        withheld[ReplaceableAttention] = (
            "label words of several tokens are read in several passes, so there is no single attention to replace"
        )
    return withheld


def _no_parts(model: PreTrainedModel) -> str:
    if model.config.is_encoder_decoder:
        return "its layers form two stacks, one of which reads the other"
    return f"the parts of a layer of '{model.config.model_type}' with these settings are not known"


def _not_in_weights(model: PreTrainedModel, readout: Readout | None, head: Head) -> dict[type[Capability], str]:
    flat = without_gradient(model)
    if flat is None:
        return {}
    lost: list[type[Capability]] = [WordEmbeddings, ReplaceableAttention, BackwardRules, Anatomy]
    # Gradients decide which states a head reads, unless it is known.
    if readout is None and not head.in_place and known_pooling(model) is None:
        lost += [ReadableAttention, AttentionLayers]
    return dict.fromkeys(lost, flat)


def capabilities_of(
    passes: ForwardPasses, removals: Removals, right: dict[int, bool], withheld: Container[type[Capability]]
) -> tuple[Capability, ...]:
    """All capabilities except those withheld; `raison doctor` checks them.

    `right` records for which layers re-running was found to be exact.
    """
    core, readout, single = passes.network.core, passes.network.readout, passes.single
    attention = TappedAttention(single, _pooling(passes, WordEmbeddings in withheld))
    capabilities: list[Capability] = [passes]
    if HiddenStates not in withheld:
        capabilities.append(LayerMeans(passes.network, passes.budget))
    if WordEmbeddings not in withheld:
        capabilities.append(TableEmbeddings(passes, removals, RowGradients(passes.brief, passes.budget)))
    if ReadableAttention not in withheld:
        capabilities.append(attention)
    if AnswerAttention not in withheld:
        capabilities.append(TokenAttention(core))
    if AttentionLayers not in withheld:
        capabilities.append(_layers(passes, attention))
    if ReplaceableAttention not in withheld:
        capabilities.append(Reruns(passes, attention.prediction_rows, right))
    if BackwardRules not in withheld:
        capabilities.append(RuledPasses(passes))
    if Anatomy not in withheld:
        anatomy = ModelAnatomy(core, readout, passes.head, single.logits, attention.prediction_rows)
        capabilities.append(anatomy if passes.reads is None else AnatomyOfReads(anatomy, passes, passes.reads))
    return tuple(capabilities)


def _layers(passes: ForwardPasses, attention: TappedAttention) -> AttentionLayers:
    if passes.reads is not None:
        return SeveralReads(passes, passes.reads, attention)
    return (
        TwoStacks(passes.network, attention) if passes.network.core.config.is_encoder_decoder else OneStack(attention)
    )


def _pooling(passes: ForwardPasses, ungraded: bool) -> Pooling | None:
    """The states that the head reads; None if gradients must decide. `ungraded`: there are no gradients."""
    if passes.network.readout is not None:
        return "last"
    if isinstance(passes.head, VectorHead):
        return _POOLINGS.get(passes.head.vectors.pooled)
    return known_pooling(passes.network.core) if ungraded else None
