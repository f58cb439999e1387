"""A transformer and how it is called: from ids or embeddings to hidden states or outputs."""

import contextlib
import inspect
from collections.abc import Hashable, Mapping
from contextlib import AbstractContextManager
from contextvars import Context
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.dims import Embeddings
from raison.core.inputs.encoding import Encoding
from raison.models.families import family_of
from raison.models.passes.encoder_decoder import EncoderDecoder
from raison.models.passes.forward_errors import as_forward_error
from raison.models.passes.given_embeddings import causal_embeddings, given_embeddings
from raison.models.passes.outputs.heads import NetworkOutput, class_logits
from raison.models.passes.outputs.readout import Readout
from raison.models.passes.prefixes.packing import PackedReader
from raison.models.passes.token_batch import TokenBatch, extended
from raison.models.passes.unpadded import is_known, padding_matters, reads_last
from raison.models.stack.caches import given_cache
from raison.models.stack.eval_mode import evaluating
from raison.models.stack.structure import structure_of
from raison.models.stack.tap import tapped
from raison.models.stack.transformer import embedding_tables, is_a

_AT_PLACES = ("ForTokenClassification", "ForMaskedLM", "ForQuestionAnswering")
"""Endings of the classes whose outputs are read at their places: tags, masked words, the ends of an answer."""


class Network:
    """A model with its own head, or with a readout of a decoder's hidden states.

    A causal model's prediction is taken from the last token that is not padding, found here from the attention mask:
    the models' own search for the pad id fails on embeddings and on texts that contain it.
    """

    def __init__(
        self,
        core: PreTrainedModel,
        model: nn.Module,
        tokenizer: PreTrainedTokenizerBase,
        readout: Readout | None,
        stack: PackedReader | EncoderDecoder | None,
    ) -> None:
        """`core` is the transformers model inside `model`.

        `stack` computes the states that a readout reads: those of a causal model, with its stored prompts, or of an
        encoder-decoder that writes.
        """
        self.core = core
        self.model = model
        self.tokenizer = tokenizer
        self.readout = readout
        self.packed = stack if isinstance(stack, PackedReader) else None
        self.stacks = stack if isinstance(stack, EncoderDecoder) else None
        accepted = inspect.signature(self.core.forward).parameters
        # A model that writes gets none, as when transformers generates: GPT-2 would add a word's embedding to each.
        typed = "token_type_ids" in tokenizer.model_input_names and "token_type_ids" in accepted
        self.takes_types = typed and not is_a(core, "ForCausalLM", "LMHeadModel")
        # A readout reads states before the padding. Without a head, nothing of XLNet reads it.
        headed = self.core.base_model is not self.core and not is_a(core, *_AT_PLACES)
        self._reads_last = headed and reads_last(self.core.config)
        self._pads: dict[Hashable, bool] = {}
        self._offset = family_of(self.core).position_offset if "position_ids" in accepted else 0

    @property
    def table(self) -> nn.Module:
        """The module that maps ids to word embeddings."""
        return self.tables[0]

    @property
    def tables(self) -> list[nn.Module]:
        """All embedding modules; an encoder-decoder may have two."""
        return embedding_tables(self.core)

    @property
    def device(self) -> torch.device:
        """The device of the model's input."""
        weight: Tensor = self.table.weight  # type: ignore[assignment]
        return weight.device

    def quiet(self) -> AbstractContextManager[None]:
        """Evaluation mode for the duration; modules that were training train again afterwards."""
        return evaluating(self.model)

    def embed(self, encoding: Encoding) -> Embeddings:
        """Word embeddings of the tokens, without a graph."""
        with torch.no_grad(), self.quiet():
            ids = encoding.input_ids.to(self.device)
            embeddings: Tensor = self.table(ids) if self.stacks is None else self.stacks.embed(ids)
        return embeddings

    def run(self, batch: TokenBatch, embeds: Embeddings | None = None) -> NetworkOutput:
        """The model's output, or the readout's class logits if there is one."""
        if self.readout is not None:
            states = [self._states(batch, branch, embeds) for branch in self.readout.branches]
            return (self.readout.logits(states),)
        given: AbstractContextManager[None] = contextlib.nullcontext()
        if embeds is not None:
            given = given_embeddings(self.tables, embeds, family_of(self.core).tokens_first)
        with given:
            return self._outputs(batch)

    @property
    def is_watched(self) -> bool:
        """Whether this thread reads the attention of the next pass. A batch then makes only one, padding included."""
        return tapped(self.core.config)

    def reads_padding(self, batch: TokenBatch) -> bool:
        """Whether the rows of a batch must run without padding. An unknown architecture is tried once, and again after
        its structure has changed."""
        if batch.mask is None or self.readout is not None:
            return False
        if is_known(self.core):
            return self._reads_last
        structure = structure_of(self.core)
        matters = self._pads.get(structure)
        if matters is None:
            matters = padding_matters(lambda rows: _choices(self._outputs(rows)), batch)
            self._pads = {structure: matters}
        return matters

    def ends(self, batch: TokenBatch) -> Int[Tensor, " rows"] | None:
        """How many end tokens each row has, where a head cannot read rows that differ in it (BART); else None."""
        config = self.core.config
        headed = config.is_encoder_decoder and is_a(self.core, "ForSequenceClassification")
        if not headed or not isinstance(config.eos_token_id, int):
            return None
        counts = (batch.ids == config.eos_token_id).sum(1)
        return counts if len(counts.unique()) > 1 else None

    def _outputs(self, batch: TokenBatch) -> NetworkOutput:
        with as_forward_error(self.core):
            outputs: NetworkOutput = self.core(**self.inputs(batch))
        return outputs

    def inputs(self, batch: TokenBatch) -> dict[str, Any]:
        """The arguments of the model's forward function."""
        inputs: dict[str, Any] = {"input_ids": batch.ids.to(self.device)}
        if self.takes_types:
            inputs["token_type_ids"] = batch.type_ids.to(self.device)
        if self._offset:
            # RoBERTa skips padding ids when it counts positions: a unit replaced by padding would shift all that
            # follow.
            width = batch.ids.shape[1]
            positions = torch.arange(self._offset, self._offset + width, device=self.device)
            inputs["position_ids"] = positions.expand(batch.ids.shape)
        mask = batch.mask
        if self.readout is not None:
            inputs["use_cache"] = False
            # Padding is on the right, so a model that is found to be causal needs no mask for it.
            if mask is None or self.packed is None or self._is_causal:
                return inputs
        # Numbers, as a tokenizer gives them: some models subtract the mask, which booleans do not allow.
        return inputs | {"attention_mask": None if mask is None else mask.long().to(self.device)}

    @property
    def _is_causal(self) -> bool:
        """Whether no state depends on later tokens."""
        assert self.packed is not None, "causality is asked of models with a readout of one stack"
        packed = self.packed
        # The first time, some passes are tried, in which nothing that this thread does in its passes is done.
        return Context().run(lambda: packed.causal)

    def _states(
        self, batch: TokenBatch, branch: tuple[int, ...], embeds: Embeddings | None
    ) -> Float[Tensor, "rows reads hidden"]:
        """Last hidden states at each row's last token and at the tokens of the branch after it."""
        if self.stacks is not None:
            return self._read(self.hidden(batch.ids.to(self.device), embeds), batch.lengths, branch)
        inputs, skipped = self.inputs(extended(batch, branch)), 0
        if batch.prefix and self.packed is not None:
            stored = self.packed.cache(batch.ids[0, : batch.prefix], len(batch.ids))
            if stored is not None:
                skipped = batch.prefix
                inputs |= {"input_ids": inputs["input_ids"][:, skipped:], **given_cache(self.core.base_model, stored)}
        lengths = batch.lengths - skipped
        given: AbstractContextManager[None] = contextlib.nullcontext()
        if embeds is not None:
            given = causal_embeddings(self.table, embeds[:, skipped:], lengths)
        with as_forward_error(self.core), given:
            hidden: Tensor = self.core.base_model(**inputs)[0]
        return self._read(hidden, lengths, branch)

    def _read(
        self, hidden: Float[Tensor, "rows tokens hidden"], lengths: Int[Tensor, "#rows"], branch: tuple[int, ...]
    ) -> Float[Tensor, "rows reads hidden"]:
        """One length may stand for all rows: a re-run replaces the last layer's output by that of many points."""
        positions = lengths[:, None] - 1 + torch.arange(len(branch) + 1)
        return hidden[torch.arange(len(hidden))[:, None], positions.to(hidden.device)]

    def hidden(
        self, ids: Int[Tensor, "rows tokens"], embeds: Embeddings | None = None
    ) -> Float[Tensor, "rows tokens hidden"]:
        """Last hidden states of all tokens of rows without padding, for a readout."""
        if self.stacks is not None:
            return self.stacks.states(ids, embeds)
        given: AbstractContextManager[None] = contextlib.nullcontext()
        if embeds is not None:
            given = causal_embeddings(self.table, embeds, torch.full((len(embeds),), ids.shape[1]))
        with given:
            states: Tensor = self.core.base_model(input_ids=ids, use_cache=False)[0]
        return states


def _choices(outputs: NetworkOutput) -> Tensor:
    """Logits, of answers those of their first tokens, or states where there are none."""
    if not isinstance(outputs, Mapping):
        return class_logits(outputs)
    named = next((name for name in ("logits", "start_logits", "last_hidden_state") if name in outputs), None)
    tensor: Tensor = outputs[named] if named is not None else next(iter(outputs.values()))
    return tensor
