"""The weights of a BERT, loaded into another class of encoder: one pretraining, several architectures."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from transformers import (
    BertForSequenceClassification,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    ElectraConfig,
    ElectraForSequenceClassification,
    PreTrainedModel,
    RobertaConfig,
    RobertaForSequenceClassification,
)
from transformers.models.bert.configuration_bert import BertConfig

from raison.core.errors import LoadError
from raison.models.stack.eval_mode import drawing

_POSITIONS = "embeddings.position_embeddings.weight"
_TYPES = "embeddings.token_type_embeddings.weight"
_DISTILBERT = {
    "encoder.layer.": "transformer.layer.",
    "attention.self.query": "attention.q_lin",
    "attention.self.key": "attention.k_lin",
    "attention.self.value": "attention.v_lin",
    "attention.output.dense": "attention.out_lin",
    "attention.output.LayerNorm": "sa_layer_norm",
    "intermediate.dense": "ffn.lin1",
    "output.dense": "ffn.lin2",
    "output.LayerNorm": "output_layer_norm",
}
"""Names of BERT's parts in DistilBERT; the longer of two that fit comes first."""


def transferred(base: PreTrainedModel, architecture: str, seed: int) -> PreTrainedModel:
    """A classifier of another class whose layers are those of `base`, a BERT, with a new head drawn by `seed`.

    "roberta" and "electra" compute the same states as the BERT, and have their own heads. "distilbert" does so for one
    segment: it has no embedding of the second segment of a pair. Their tokenizer is the BERT's. The caller's random
    state is unchanged. Raises LoadError if the base is not a BERT.
    """
    if not isinstance(base, BertForSequenceClassification):
        kind = base.config.model_type
        raise LoadError(f"only the weights of a BERT can be loaded into {architecture}, not those of a {kind}.")
    with drawing(seed):
        model = _CLASSES[architecture](base.config)
    body = {
        name.removeprefix("bert."): value
        for name, value in base.state_dict().items()
        if name.startswith("bert.") and not name.startswith("bert.pooler.")
    }
    model.base_model.load_state_dict(_STATES[architecture](body, base.config))
    return model.eval()


def _shared(config: BertConfig) -> dict[str, Any]:
    return {
        "vocab_size": config.vocab_size,
        "pad_token_id": config.pad_token_id,
        "id2label": config.id2label,
        "label2id": config.label2id,
        "layer_norm_eps": config.layer_norm_eps,
    }


def _layers(config: BertConfig) -> dict[str, Any]:
    return {
        "hidden_size": config.hidden_size,
        "num_hidden_layers": config.num_hidden_layers,
        "num_attention_heads": config.num_attention_heads,
        "intermediate_size": config.intermediate_size,
        "hidden_act": config.hidden_act,
        "type_vocab_size": config.type_vocab_size,
    }


def _unused(config: BertConfig) -> int:
    """Rows of RoBERTa's position table that no token uses: it counts positions from the padding id on."""
    return int(config.pad_token_id or 0) + 1


def _roberta(config: BertConfig) -> PreTrainedModel:
    positions = config.max_position_embeddings + _unused(config)
    return RobertaForSequenceClassification(
        RobertaConfig(**_shared(config), **_layers(config), max_position_embeddings=positions)
    )


def _electra(config: BertConfig) -> PreTrainedModel:
    positions, width = config.max_position_embeddings, config.hidden_size
    return ElectraForSequenceClassification(
        ElectraConfig(**_shared(config), **_layers(config), max_position_embeddings=positions, embedding_size=width)
    )


def _distilbert(config: BertConfig) -> PreTrainedModel:
    shape: dict[str, Any] = {
        "dim": config.hidden_size,
        "n_layers": config.num_hidden_layers,
        "n_heads": config.num_attention_heads,
        "hidden_dim": config.intermediate_size,
        "activation": config.hidden_act,
        "max_position_embeddings": config.max_position_embeddings,
    }
    shared = {name: value for name, value in _shared(config).items() if name != "layer_norm_eps"}
    return DistilBertForSequenceClassification(DistilBertConfig(**shared, **shape))


def _moved(body: Mapping[str, Tensor], config: BertConfig) -> dict[str, Tensor]:
    table = body[_POSITIONS]
    return {**body, _POSITIONS: torch.cat([table.new_zeros(_unused(config), table.shape[1]), table])}


def _same(body: Mapping[str, Tensor], _config: BertConfig) -> dict[str, Tensor]:
    return dict(body)


def _renamed(body: Mapping[str, Tensor], _config: BertConfig) -> dict[str, Tensor]:
    """Every token gets the embedding of the first segment, which is in the table of positions."""
    state = {}
    for name, value in body.items():
        new = name
        for part, other in _DISTILBERT.items():
            new = new.replace(part, other)
        state[new] = value
    state[_POSITIONS] = state[_POSITIONS] + state.pop(_TYPES)[0]
    return state


_CLASSES: dict[str, Callable[[BertConfig], PreTrainedModel]] = {
    "distilbert": _distilbert,
    "electra": _electra,
    "roberta": _roberta,
}
_STATES: dict[str, Callable[[Mapping[str, Tensor], BertConfig], dict[str, Tensor]]] = {
    "distilbert": _renamed,
    "electra": _same,
    "roberta": _moved,
}
ARCHITECTURES = tuple(_CLASSES)
"""The architectures of `transferred`."""
