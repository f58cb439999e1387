"""The transformers model inside the caller's model, and the places of its embeddings and its head."""

from typing import cast

import torch
from torch import nn
from transformers import PreTrainedModel

from raison.core.errors import UnsupportedError
from raison.models.families import Pooling, family_of
from raison.models.stack.blocks import twin
from raison.models.stack.structure import is_foreign, is_of_libraries


def inner_model(model: nn.Module) -> PreTrainedModel:
    """The transformers model inside a PEFT wrapper, adapters still active in it; the model itself otherwise.

    A model that would change its own modules on the first short text (BigBird) is replaced by a twin that has already
    changed, with the same weights.
    """
    if isinstance(model, PreTrainedModel):
        return _fully_attending(model) if family_of(model).longest is not None else model
    from peft import PeftModel

    if not isinstance(model, PeftModel):
        raise UnsupportedError(
            f"cannot explain a {type(model).__name__}",
            ["it is not a transformers model"],
            "Pass an AutoModelForSequenceClassification or another transformers model, or a PEFT model of one; of a "
            "compiled or parallel model the one inside (model._orig_mod, model.module).",
        )
    if model.active_peft_config.is_prompt_learning:
        raise UnsupportedError(
            f"cannot explain a model with {model.active_peft_config.peft_type}",
            ["its virtual tokens do not correspond to text"],
            "Use LoRA or another adapter that changes weights.",
        )
    return inner_model(model.get_base_model())


def _fully_attending(model: PreTrainedModel) -> PreTrainedModel:
    """New modules over the same tensors, in evaluation mode, with full attention."""
    attending = cast(PreTrainedModel, twin(model, {})).eval()
    with torch.random.fork_rng(devices=[]):
        # Draws new layers, which are replaced by the model's own at once.
        attending.base_model.set_attention_type("original_full")
    return attending


def embedding_tables(model: PreTrainedModel) -> list[nn.Module]:
    """The modules that turn ids into word embeddings: the encoder's or the only one, then a decoder's own.

    Raises UnsupportedError for a model that computes its embeddings, as CANINE does from characters.
    """
    if is_a(model, "T5EncoderModel"):
        # The model's own table is not the module that the encoder calls.
        stacks = [model.get_encoder()]
    elif model.config.is_encoder_decoder:
        stacks = [model.get_encoder(), model.get_decoder()]
    else:
        stacks = [model]
    tables = [_table_of(stack, model) for stack in stacks]
    return tables[:1] if tables[0] is tables[-1] else tables


def _table_of(stack: nn.Module, model: PreTrainedModel) -> nn.Module:
    """The word embeddings of a stack of the model."""
    try:
        # A stack that is a plain module, as in FSMT, does not name its table.
        table = stack.get_input_embeddings() if isinstance(stack, PreTrainedModel) else None
    except NotImplementedError:
        # So transformers says that a model has no table.
        raise _no_table(model) from None
    if table is None:
        raise _no_table(model)
    return table


def _no_table(model: PreTrainedModel) -> UnsupportedError:
    return UnsupportedError(
        f"cannot explain a {type(model).__name__}",
        ["transformers names no table of word embeddings in it"],
        "Explain it as a function: raison.load(function, classes=[...]).",
    )


def is_a(model: PreTrainedModel, *endings: str) -> bool:
    """Whether the name of the model's class, or of one of its bases, has such an ending."""
    return any(kind.__name__.endswith(endings) for kind in type(model).__mro__)


DECODER_HEAD = "score"
"""The name of the linear head in transformers' decoders that classify."""


def has_decoder_head(model: PreTrainedModel) -> bool:
    """Whether a model is a decoder with a linear head, DECODER_HEAD, that classifies from its last token.

    A forward function of one's own may do anything else with a module of that name.
    """
    named = DECODER_HEAD in dict(model.named_children()) and model.base_model is not model
    return named and is_of_libraries(model.forward)


def known_pooling(model: PreTrainedModel) -> Pooling | None:
    """Which states transformers' own classifier of a known family reads; None for any other.

    None, too, if a part outside of its layers, such as the pooler, was replaced by one that no usual library has made.
    """
    around = (module for name, module in model.named_modules() if not any(map(str.isdigit, name.split("."))))
    of_transformers = type(model).__module__.startswith("transformers.")
    return family_of(model).pools if of_transformers and not any(map(is_foreign, around)) else None
