"""What a model can do: told by its architecture, its head and its layers."""

import contextlib

import torch
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.capabilities.attention import ReadableAttention
from raison.core.capabilities.attention_paths import ReplaceableAttention
from raison.core.capabilities.decomposition import Anatomy
from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.capabilities.hidden_states import HiddenStates
from raison.core.capabilities.passes import Passes
from raison.core.capabilities.reduced_precision import ReducedPrecision
from raison.core.capabilities.rules import BackwardRules
from raison.core.capabilities.step_logits import StepLogits
from raison.core.capability import Capability
from raison.core.errors import UnsupportedError
from raison.models.anatomy.decomposition import can_take_apart
from raison.models.gradients.quantised import without_gradient
from raison.models.passes.heads import Head, class_logits
from raison.models.passes.readout import Readout
from raison.models.stack.modes import evaluating
from raison.models.stack.tap import attention_modules
from raison.models.stack.transformer import known_pooling


@torch.inference_mode()
def classifies(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether a class from outside of transformers gives one logit per label for a text: one pass of one word.

    transformers' own say by their names what they are.
    """
    if type(model).__module__.startswith("transformers."):
        return False
    ids = tokenizer("a", return_tensors="pt")["input_ids"].to(model.device)
    with evaluating(model):
        try:
            found = class_logits(model(input_ids=ids))
        except (RuntimeError, TypeError, ValueError, LookupError):
            return False
    return isinstance(found, Tensor) and found.shape == (1, model.config.num_labels)


def withheld_from(model: PreTrainedModel, readout: Readout | None, head: Head) -> dict[type[Capability], str]:
    """What the architecture allows and this model does not, each with the reason."""
    flat = without_gradient(model)
    if flat is None:
        return {}
    lost: list[type[Capability]] = [WordEmbeddings, ReplaceableAttention, BackwardRules, Anatomy]
    # Which states a head reads is found from gradients, unless it is known.
    if readout is None and not head.in_place and known_pooling(model) is None:
        lost.append(ReadableAttention)
    return dict.fromkeys(lost, flat)


def capabilities_of(model: PreTrainedModel, readout: Readout | None, head: Head) -> frozenset[type[Capability]]:
    """What the architecture allows; `raison doctor` checks that it holds."""
    found: set[type[Capability]] = {Passes, HiddenStates, ReducedPrecision, WordEmbeddings}
    if readout is not None:
        found.add(StepLogits)
    if can_take_apart(model):
        found.add(Anatomy)
    with contextlib.suppress(UnsupportedError):
        attention_modules(model)
        found.add(BackwardRules)
    # The head of an encoder-decoder reads the decoder: the encoder's attention has no row that predicts.
    if not model.config.is_encoder_decoder:
        with contextlib.suppress(UnsupportedError):
            attention_modules(model)
            found.add(ReadableAttention)
            # Label words of several tokens are read in several passes: there is no one attention to replace. An answer
            # is read from all positions of its context, and the upper layers cannot be re-run for a row alone.
            if not head.in_place and (readout is None or readout.branches == ((),)):
                found.add(ReplaceableAttention)
    return frozenset(found)
