"""A T5 encoder as a classifier: the mean of its last states, and a linear head."""

from typing import ClassVar

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn
from transformers import T5Config, T5EncoderModel
from transformers.modeling_outputs import SequenceClassifierOutput
from transformers.models.t5.modeling_t5 import T5PreTrainedModel

ARCHITECTURE = "T5EncoderForSequenceClassification"
"""The name in config.architectures; transformers has no such class and would otherwise load another one."""


class T5EncoderForSequenceClassification(T5PreTrainedModel):
    """The encoder half of a T5, the mean over the tokens that are not padding, dropout, and one linear layer.

    T5 has no token that represents the whole text, so a classifier without a decoder takes the mean of all. A T5
    checkpoint's encoder loads into it; its decoder is left out. `config.classifier_dropout` is the head's dropout.
    Source: the thesis of the project's papers, sections 3.6.1 and 3.6.2.2.
    """

    _tied_weights_keys: ClassVar[dict[str, str]] = {  # type: ignore[misc]
        "transformer.encoder.embed_tokens.weight": "transformer.shared.weight"
    }
    _keys_to_ignore_on_load_unexpected: ClassVar[list[str]] = ["decoder", "lm_head"]  # type: ignore[misc]

    def __init__(self, config: T5Config) -> None:
        super().__init__(config)
        self.num_labels = config.num_labels
        self.transformer = T5EncoderModel(config)
        self.dropout = nn.Dropout(config.classifier_dropout)
        self.classifier = nn.Linear(config.d_model, len(config.id2label or {}))
        self.post_init()  # type: ignore[no-untyped-call]

    def get_input_embeddings(self) -> nn.Module:
        """The embedding table that the encoder uses; transformers returns another module with the same weights."""
        table: nn.Module = self.transformer.encoder.embed_tokens
        return table

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replace the table in every module that uses it."""
        self.transformer.set_input_embeddings(value)

    def forward(
        self,
        input_ids: Int[Tensor, "rows tokens"] | None = None,
        attention_mask: Shaped[Tensor, "rows tokens"] | None = None,
        inputs_embeds: Float[Tensor, "rows tokens hidden"] | None = None,
        labels: Int[Tensor, " rows"] | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
    ) -> SequenceClassifierOutput | tuple[Tensor, ...]:
        """Logits of every row, and with `labels` the mean cross-entropy (nats); the names are those of transformers.

        `attention_mask` is 0 at padding, and None if there is no padding.
        """
        encoded = self.transformer(
            input_ids=input_ids,
            attention_mask=attention_mask,
            inputs_embeds=inputs_embeds,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states,
        )
        logits: Tensor = self.classifier(self.dropout(_mean(encoded.last_hidden_state, attention_mask)))
        output = SequenceClassifierOutput(
            loss=None if labels is None else nn.functional.cross_entropy(logits, labels),
            logits=logits,
            hidden_states=encoded.hidden_states,
            attentions=encoded.attentions,
        )
        return output.to_tuple() if return_dict is False else output


def _mean(
    states: Float[Tensor, "rows tokens hidden"], mask: Shaped[Tensor, "rows tokens"] | None
) -> Float[Tensor, "rows hidden"]:
    if mask is None:
        return states.mean(1)
    weights = mask.to(states)[..., None]
    return torch.sum(states * weights, 1) / weights.sum(1)
