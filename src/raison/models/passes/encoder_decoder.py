"""The two stacks of an encoder-decoder that writes, over rows that hold a text followed by the written tokens."""

import contextlib
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel

from raison.core.dims import Embeddings
from raison.models.passes.given_embeddings import causal_embeddings
from raison.models.stack.transformer import embedding_tables


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """The encoder's states of texts, which the decoder reads, and which of them are tokens; None: all of them."""

    states: Float[Tensor, "rows tokens hidden"]
    mask: Bool[Tensor, "rows tokens"] | None

    def of_rows(self, rows: list[int]) -> "Source":
        """Some of the texts, also several times each."""
        return Source(self.states[rows], None if self.mask is None else self.mask[rows])


class EncoderDecoder:
    """Rows of tokens: the encoder reads the first `border`, the decoder the others, beginning with the start token."""

    def __init__(self, core: PreTrainedModel, border: int) -> None:
        self.border = border
        self._encoder: nn.Module = core.get_encoder()
        self._decoder: nn.Module = core.get_decoder()
        tables = embedding_tables(core)
        self._tables = tables[0], tables[-1]

    def embed(self, ids: Int[Tensor, "rows tokens"]) -> Embeddings:
        """Word embeddings of rows, from each stack's own table."""
        source, written = self._tables
        return torch.cat([source(ids[:, : self.border]), written(ids[:, self.border :])], 1)

    def states(
        self, ids: Int[Tensor, "rows tokens"], embeds: Embeddings | None = None
    ) -> Float[Tensor, "rows tokens hidden"]:
        """Last hidden states of all tokens, each of its own stack. Padding is at the end, where no token sees it."""
        border = self.border
        source = self.encode(ids[:, :border], None, None if embeds is None else embeds[:, :border])
        written = self.decode(ids[:, border:], source, None if embeds is None else embeds[:, border:])
        return torch.cat([source.states, written.to(source.states)], 1)

    def encode(
        self,
        ids: Int[Tensor, "rows tokens"],
        mask: Bool[Tensor, "rows tokens"] | None = None,
        embeds: Embeddings | None = None,
    ) -> Source:
        """The encoder's states of texts."""
        device_mask = None if mask is None else mask.to(ids.device)
        with _given(self._tables[0], embeds):
            states: Tensor = self._encoder(input_ids=ids, attention_mask=device_mask)[0]
        return Source(states, device_mask)

    def decode(
        self, ids: Int[Tensor, "rows tokens"], source: Source, embeds: Embeddings | None = None
    ) -> Float[Tensor, "rows tokens hidden"]:
        """The decoder's last hidden states, whose tokens see those before them."""
        with _given(self._tables[1], embeds):
            states: Tensor = self._decoder(
                input_ids=ids,
                encoder_hidden_states=source.states,
                encoder_attention_mask=source.mask,
                use_cache=False,
            )[0]
        return states


def _given(table: nn.Module, embeds: Embeddings | None) -> AbstractContextManager[None]:
    if embeds is None:
        return contextlib.nullcontext()
    return causal_embeddings(table, embeds, torch.full((len(embeds),), embeds.shape[1]))
