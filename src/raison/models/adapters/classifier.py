"""Any sequence classifier, and any causal language model used as one."""

import copy
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from raison.core.capability import Capability
from raison.core.inputs.encoding import Encoding
from raison.core.inputs.parts import Given
from raison.core.inputs.unit import Granularity
from raison.core.model import LanguageModel
from raison.models.adapters.assembly import Assembly
from raison.models.adapters.offered.reduced_precision import ReducedTwin
from raison.models.adapters.ranking import ranking
from raison.models.adapters.task_setup import TaskSetup
from raison.models.passes.outputs.readout import TokenReadout
from raison.models.passes.removal import special_names, unknown_id
from raison.models.stack.transformer import inner_model
from raison.models.tokens.max_tokens import max_tokens
from raison.models.tokens.token_rows import padding_id


class Classifier(LanguageModel):
    """A classifier and its tokenizer. Both are the caller's own objects and are not changed.

    A causal model predicts through a readout: its classification head, or label words after a prompt that the use's
    encoder puts around the text.
    """

    def __init__(
        self, model: nn.Module, tokenizer: PreTrainedTokenizerBase, name: str, use: TaskSetup | None = None
    ) -> None:
        """Without a `use`, the model is a sequence classifier."""
        self.model = model
        self.tokenizer = tokenizer
        self.name = name
        self.core = inner_model(model)
        self.use = TaskSetup.as_classifier(self.core, tokenizer) if use is None else use
        self.head, self.readout = self.use.head, self.use.readout
        self.strings = 2 if self.head.in_context else self.use.strings
        self.classes, self.multi_label = self.head.classes, self.head.multi_label
        self.max_tokens = max_tokens(self.core.config, tokenizer.model_max_length)
        self.unknown_id = unknown_id(tokenizer)
        self.special_names = special_names(tokenizer) - self.use.kept
        parts = Assembly(self.core, model, tokenizer, name, self.use)
        self.passes, self.budget = parts.passes, parts.passes.budget
        self.removing, self.removals = parts.removals, parts.removals.names
        self._rows = parts.rows
        self.choosing = None if self.use.choosing is None else self.use.choosing(self.passes)
        self.withheld = parts.withheld
        self.capabilities = (*parts.capabilities, ReducedTwin(self, parts.cache))

    @property
    def device(self) -> torch.device:
        """The device of the model's input."""
        return self.passes.network.device

    @cached_property
    def ranker(self) -> LanguageModel:
        """See LanguageModel.ranker."""
        if self.outputs != "number":
            return super().ranker
        return self.over(self.model, ranking(self.use, padding_id(self.tokenizer)))

    @property
    def embedding_table(self) -> nn.Module:
        """The module that maps ids to word embeddings."""
        return self.passes.network.table

    def encode(self, texts: Sequence[Given], unit: Granularity = "word", truncate: bool = False) -> Encoding:
        """See LanguageModel.encode. A model that answers or predicts at places of a text takes one pass per text."""
        encoding = self.tokenized(texts, unit, truncate)
        if self.choosing is not None:
            return self.choosing.read(encoding)
        return replace(encoding, spans=self.passes.predicted(encoding)) if self.head.in_place else encoding

    def tokenized(self, texts: Sequence[Given], unit: Granularity = "word", truncate: bool = False) -> Encoding:
        """See LanguageModel.tokenized."""
        return self.use.encoder.encode(texts, unit, truncate)

    def check_removal(self, removal: str) -> None:
        self.removing.remover(removal)

    def masked_logits(
        self, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], removal: str
    ) -> list[Float[Tensor, "_masks classes"]]:
        remover = self.removing.remover(removal)
        if self._rows is not None:
            return self._rows.masked_logits(encoding, keeps, remover)
        return self.passes.masked_logits(encoding, keeps, remover)

    def quiet(self) -> AbstractContextManager[None]:
        """Evaluation mode for the duration; modules that were training train again afterwards."""
        return self.passes.network.quiet()

    def over(self, model: nn.Module, use: TaskSetup) -> "Classifier":
        """The same adapter over a twin of its model."""
        return Classifier(model, self.tokenizer, self.name, use)

    def offering(self, capability: Capability) -> "Classifier":
        """This classifier with one capability replaced."""
        (kind,) = (base for base in type(capability).__mro__ if base.__base__ is Capability)
        changed = copy.copy(self)
        changed.capabilities = (
            *(offered for offered in self.capabilities if not isinstance(offered, kind)),
            capability,
        )
        return changed


def text_classifier(model: LanguageModel) -> Classifier | None:
    """The model as a classifier of texts; None for other adapters and for readers of generated output."""
    return model if isinstance(model, Classifier) and not isinstance(model.readout, TokenReadout) else None
