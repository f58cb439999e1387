"""What is inside the model that a caller gives: the transformers model, its head, and what it can do."""

import contextlib

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.errors import UnsupportedError
from raison.core.model import Capability
from raison.core.outputs import outputs_of
from raison.models.decomposition import can_take_apart
from raison.models.families import Pooling, family_of
from raison.models.heads import Head, class_logits
from raison.models.quantised import without_gradient
from raison.models.quiet import evaluating
from raison.models.readout import Readout
from raison.models.tap import attention_modules


def inner_model(model: nn.Module) -> PreTrainedModel:
    """The transformers model inside a PEFT wrapper, adapters still active in it; the model itself otherwise."""
    if isinstance(model, PreTrainedModel):
        return model
    from peft import PeftModel

    if not isinstance(model, PeftModel):
        raise UnsupportedError(
            f"cannot explain a {type(model).__name__}",
            ["it is not a transformers model"],
            "Pass an AutoModelForSequenceClassification or another transformers model, or a PEFT model of one.",
        )
    if model.active_peft_config.is_prompt_learning:
        raise UnsupportedError(
            f"cannot explain a model with {model.active_peft_config.peft_type}",
            ["its virtual tokens stand for no text"],
            "LoRA and other adapters of weights work.",
        )
    return model.get_base_model()


def embedding_tables(model: PreTrainedModel) -> list[nn.Module]:
    """The modules that turn ids into word embeddings: the encoder's or the only one, then a decoder's own."""
    if not model.config.is_encoder_decoder:
        return [model.get_input_embeddings()]
    both = [model.get_encoder().get_input_embeddings(), model.get_decoder().get_input_embeddings()]
    return both[:1] if both[0] is both[1] else both


def is_a(model: PreTrainedModel, *endings: str) -> bool:
    """Whether the model's class, or one that it is made from, has a name that ends so."""
    return any(kind.__name__.endswith(endings) for kind in type(model).__mro__)


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


def decoder_head(model: PreTrainedModel) -> nn.Module | None:
    """The linear head of a decoder that classifies from its last token; None for encoders."""
    head = dict(model.named_children()).get("score")
    return head if model.base_model is not model else None


def known_pooling(model: PreTrainedModel) -> Pooling | None:
    """Which states transformers' own classifier of a known family reads; None for any other."""
    own = type(model).__module__.startswith("transformers.")
    return family_of(model).pools if own else None


def withheld_from(model: PreTrainedModel, readout: Readout | None, head: Head) -> dict[Capability, str]:
    """What the architecture allows and this model does not, each with the reason."""
    flat = without_gradient(model)
    if flat is None:
        return {}
    lost = [Capability.EMBEDDINGS, Capability.ATTENTION_PATHS, Capability.RULES, Capability.DECOMPOSITION]
    # Which states a head reads is found from gradients, unless it is known.
    if readout is None and not head.in_place and known_pooling(model) is None:
        lost.append(Capability.ATTENTION)
    return dict.fromkeys(lost, flat)


def capabilities_of(model: PreTrainedModel, readout: Readout | None, head: Head) -> frozenset[Capability]:
    """What the architecture allows; `raison doctor` checks that it holds."""
    found = {Capability.EMBEDDINGS} if readout is None else {Capability.EMBEDDINGS, Capability.STEP_LOGITS}
    if outputs_of(head.classes, head.multi_label) != "number":
        found.add(Capability.CLASSES)
    if can_take_apart(model):
        found.add(Capability.DECOMPOSITION)
    with contextlib.suppress(UnsupportedError):
        attention_modules(model)
        found.add(Capability.RULES)
    # The head of an encoder-decoder reads the decoder: the encoder's attention has no row that predicts.
    if not model.config.is_encoder_decoder:
        with contextlib.suppress(UnsupportedError):
            attention_modules(model)
            found.add(Capability.ATTENTION)
            # Label words of several tokens are read in several passes: there is no one attention to replace. An answer
            # is read from all positions of its context, and the upper layers cannot be re-run for a row alone.
            if not head.in_place and (readout is None or readout.branches == ((),)):
                found.add(Capability.ATTENTION_PATHS)
    return frozenset(found)
