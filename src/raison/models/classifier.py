"""Any sequence classifier, and any causal language model used as one, behind the one door to a model."""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.attention import AttentionSite
from raison.core.dims import Embeddings, Logits, Points
from raison.core.encoding import Encoding
from raison.core.errors import NonFiniteError, UnsupportedError
from raison.core.model import Capability, LanguageModel, Path, Shift
from raison.core.target import Target
from raison.core.unit import Granularity, Text
from raison.models import batching
from raison.models.causal import CausalReader
from raison.models.diagnose import first_nonfinite
from raison.models.embeddings import causal_embeddings, given_embeddings
from raison.models.encoder import TextEncoder
from raison.models.families import Pooling, family_of
from raison.models.gradients import path_gradients
from raison.models.hidden import Layers, hidden_states
from raison.models.limits import max_tokens
from raison.models.packing import PackedReader
from raison.models.pooling import find_pooling, prediction_rows
from raison.models.quiet import evaluating
from raison.models.readout import HeadReadout, Readout
from raison.models.removal import Remover, check_removal, placeholder_id, remove_all, replacement_ids
from raison.models.rerun import Reruns
from raison.models.shift import shifted_tables
from raison.models.tap import Tap, attention_modules, tap


@runtime_checkable
class Encoder(Protocol):
    """Texts to encodings."""

    def encode(self, texts: Sequence[Text], unit: Granularity, truncate: bool) -> Encoding:
        """See LanguageModel.encode."""


@dataclass(frozen=True, slots=True, eq=False)
class Completion:
    """How a causal language model is used as a classifier: what is put around a text, and how answers are read."""

    classes: tuple[str, ...]
    encoder: Encoder
    readout: Readout


class Classifier(LanguageModel):
    """A classifier and its tokenizer, both the caller's own objects and left as they are.

    A causal model predicts through a readout: its classification head, or label words after a prompt that `encoder`
    puts around the text. The prediction is taken from the last token that is not padding, found here from the
    attention mask: the models' own search for the pad id fails on embeddings and on texts that contain it.
    """

    def __init__(
        self,
        model: nn.Module,
        tokenizer: PreTrainedTokenizerBase,
        name: str,
        completion: Completion | None = None,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.name = name
        self.core = inner_model(model)
        self.max_tokens = max_tokens(self.core.config, tokenizer.model_max_length)
        if completion is None:
            self.multi_label = self.core.config.problem_type == "multi_label_classification"
            self._single = self.core.config.num_labels == 1
            self.classes = _class_names(self.core)
            self._encoder: Encoder = TextEncoder(tokenizer, self.max_tokens)
            head = decoder_head(self.core)
            self.readout: Readout | None = None if head is None else HeadReadout(((),), head)
        else:
            self.multi_label = self._single = False
            self.classes, self._encoder, self.readout = completion.classes, completion.encoder, completion.readout
        self._replacements = replacement_ids(tokenizer)
        self.removals = (*self._replacements, "delete")
        self._pooling: Pooling | None = None if self.readout is None else "last"
        accepted = inspect.signature(self.core.forward).parameters
        self.takes_types = "token_type_ids" in tokenizer.model_input_names and "token_type_ids" in accepted
        self._offset = family_of(self.core).position_offset if "position_ids" in accepted else 0
        self.budget = batching.TokenBudget(batching.default_budget(self.device))
        self.capabilities = _capabilities(self.core, self.readout)
        self._packed = None if self.readout is None else PackedReader(self.core.base_model, self.budget)
        self._reruns = Reruns(self.core, self._predict, self.budget)

    @property
    def device(self) -> torch.device:
        """Where the model takes its input."""
        return self.embedding_table.weight.device

    @property
    def embedding_table(self) -> nn.Module:
        """The module that turns ids into word embeddings."""
        reader = self.core.get_encoder() if self.core.config.is_encoder_decoder else self.core
        return reader.get_input_embeddings()

    def encode(self, texts: Sequence[Text], unit: Granularity = "word", truncate: bool = False) -> Encoding:
        return self._encoder.encode(texts, unit, truncate)

    def embed(self, encoding: Encoding) -> Embeddings:
        with torch.no_grad(), self.quiet():
            return self.embedding_table(encoding.input_ids.to(self.device))

    def logits(self, encoding: Encoding, embeds: Embeddings | None = None) -> Logits:
        lengths = encoding.attention_mask.sum(1)
        batch = batching.TokenBatch(encoding.input_ids, encoding.type_ids, lengths)
        return self.forward(batch, embeds)

    def logits_at(self, encoding: Encoding, embeds: Embeddings) -> Logits:
        lengths = encoding.attention_mask.sum(1)
        batch = batching.TokenBatch(encoding.input_ids, encoding.type_ids, lengths, encoding.prefix_length)
        return self.forward(batch, embeds)

    def forward(self, batch: batching.TokenBatch, embeds: Embeddings | None = None) -> Logits:
        """One differentiable pass over one batch, in at least single precision out. Raises NonFiniteError."""
        with self.quiet():
            logits = self._predict(batch, embeds)
            finite = torch.isfinite(logits.detach()).all(-1)
            if not finite.all():
                self._raise_nonfinite(batch, finite.logical_not().nonzero()[0, 0].item())
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def removed(self, encoding: Encoding, removal: str) -> Encoding:
        check_removal(removal, self._replacements)
        if removal == "delete":
            raise UnsupportedError(
                "deleted tokens have no embedding", ["removal 'delete' changes the length"], "Use mask, unk or pad."
            )
        return remove_all(encoding, self._replacements[removal])

    def masked_logits(
        self, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], removal: str
    ) -> list[Float[Tensor, "_masks classes"]]:
        remover = self._remover(removal)
        if self._packed is not None and not self.takes_types:
            with self.quiet():
                return self._finite(encoding, self._reader().masked_logits(encoding, keeps, remover))

        def forward(batch: batching.TokenBatch) -> Tensor:
            return self.forward(batch).cpu()

        with torch.no_grad():
            return batching.masked_logits(encoding, keeps, remover, self.budget, forward)

    def step_logits(
        self, encoding: Encoding, keeps: Sequence[Bool[Tensor, "_masks _units"]], removal: str
    ) -> list[Float[Tensor, "_masks _units classes"]]:
        with self.quiet():
            return self._finite(encoding, self._reader().step_logits(encoding, keeps, self._remover(removal)))

    def start_logits(self, encoding: Encoding) -> Logits:
        with self.quiet():
            logits = self._reader().start_logits(encoding)
        return torch.stack(self._finite(encoding, list(logits)))

    def path_gradients(
        self, encoding: Encoding, path: Path, positions: Points, weights: Points, target: Target
    ) -> tuple[list[Float[Tensor, "_tokens hidden"]], Float[Tensor, "batch points"]]:
        return path_gradients(self.forward, self.budget, encoding, path, (positions, weights), target)

    def tap(self, layers: Sequence[int] | None = None) -> AbstractContextManager[Tap]:
        return tap(self.core, layers=layers)

    def _reader(self) -> CausalReader:
        if self._packed is None or self.readout is None:
            raise UnsupportedError(
                f"{self.name} has no intermediate predictions",
                ["only causal models predict after each part of a text"],
                "Use a decoder, or another method.",
            )
        return CausalReader(self._packed, self.readout)

    def _remover(self, removal: str) -> Remover:
        check_removal(removal, self._replacements)
        token = None if removal == "delete" else self._replacements[removal]
        return Remover(token, placeholder_id(self.tokenizer))

    def _finite(self, encoding: Encoding, logits: list[Tensor]) -> list[Tensor]:
        """The logits of each text, of two classes where the model has one output. Raises NonFiniteError."""
        for text, found in enumerate(logits):
            if not torch.isfinite(found).all():
                row = encoding.select([text])
                batch = batching.TokenBatch(row.input_ids, row.type_ids, row.attention_mask.sum(1))
                self._raise_nonfinite(batch, 0)
        return [self._two_classes(found) for found in logits]

    def _two_classes(self, logits: Tensor) -> Tensor:
        """One output is a logistic model: the second class is "not", with logit zero."""
        return torch.cat([torch.zeros_like(logits), logits], dim=-1) if self._single else logits

    def prediction_rows(self, encoding: Encoding) -> Float[Tensor, "batch tokens"]:
        if self._pooling is None:
            # Also where the caller wants no gradients of its own.
            with torch.inference_mode(False), torch.enable_grad():
                self._pooling = find_pooling(self.core, encoding.select([0]), self._grown_logits)
        return prediction_rows(self._pooling, encoding)

    def _grown_logits(self, encoding: Encoding) -> Logits:
        """Logits with a graph behind them even where every parameter is frozen."""
        return self.logits(encoding, self.embed(encoding).requires_grad_())

    def attention_sites(self, encoding: Encoding, layers: Callable[[int], Sequence[int]]) -> list[AttentionSite]:
        with self.quiet():
            return self._reruns.sites(encoding, self.prediction_rows(encoding), layers)

    def batches(self, encoding: Encoding) -> list[list[int]]:
        return batching.groups(encoding.lengths, self.budget.tokens)

    def hidden_states(self, encoding: Encoding) -> list[Float[Tensor, "_tokens hidden"]]:
        with self.quiet():
            return hidden_states(encoding, self.budget, self._run_layers)

    @contextmanager
    def shifted(self, shift: Shift) -> Iterator[None]:
        """An encoder-decoder reads the text with two tables of equal rows: both move. Contexts add up when nested.

        Embeddings that are given to `logits` are taken as they are: `embed` has moved them already.
        """
        tables = [self.embedding_table]
        if self.core.config.is_encoder_decoder:
            tables.append(self.core.get_decoder().get_input_embeddings())
        stored = contextlib.nullcontext() if self._packed is None else self._packed.uncached()
        with stored, shifted_tables(tables, shift, self.tokenizer.all_special_ids):
            yield

    def quiet(self) -> AbstractContextManager[None]:
        """Evaluation mode for the duration; modules that were training train again afterwards."""
        return evaluating(self.model)

    def _predict(self, batch: batching.TokenBatch, embeds: Embeddings | None = None) -> Logits:
        """One differentiable pass, whatever comes out."""
        with self.quiet():
            return self._two_classes(self._run(batch, embeds))

    def _run(self, batch: batching.TokenBatch, embeds: Embeddings | None = None) -> Tensor:
        if self.readout is not None:
            return self.readout.logits([self._states(batch, branch, embeds) for branch in self.readout.branches])
        decoder = self.core.get_decoder() if self.core.config.is_encoder_decoder else None
        tables = [self.embedding_table, *([] if decoder is None else [decoder.get_input_embeddings()])]
        with contextlib.nullcontext() if embeds is None else given_embeddings(tables, embeds):
            return self.core(**self._inputs(batch))[0]

    def _states(
        self, batch: batching.TokenBatch, branch: tuple[int, ...], embeds: Embeddings | None
    ) -> Float[Tensor, "rows reads hidden"]:
        """Last hidden states at each row's last token and at those of the branch put after it."""
        inputs, skipped = self._inputs(batching.extended(batch, branch)), 0
        if batch.prefix and self._packed is not None:
            stored = self._packed.cache(batch.ids[0, : batch.prefix], len(batch.ids))
            if stored is not None:
                skipped = batch.prefix
                inputs |= {"input_ids": inputs["input_ids"][:, skipped:], "past_key_values": stored}
        lengths = batch.lengths - skipped
        given = contextlib.nullcontext()
        if embeds is not None:
            given = causal_embeddings(self.embedding_table, embeds[:, skipped:], lengths)
        with given:
            hidden = self.core.base_model(**inputs)[0]
        positions = lengths[:, None] - 1 + torch.arange(len(branch) + 1)
        return hidden[torch.arange(len(hidden))[:, None], positions.to(hidden.device)]

    def _run_layers(self, batch: batching.TokenBatch) -> Layers:
        reader = self.core.get_encoder() if self.core.config.is_encoder_decoder else self.core.base_model
        return reader(**self._inputs(batch), output_hidden_states=True).hidden_states

    def _inputs(self, batch: batching.TokenBatch) -> dict[str, Any]:
        inputs: dict[str, Any] = {"input_ids": batch.ids.to(self.device)}
        if self.takes_types:
            inputs["token_type_ids"] = batch.type_ids.to(self.device)
        if self._offset:
            # RoBERTa skips padding ids when it counts positions: a unit removed by padding would move all that follow.
            width = batch.ids.shape[1]
            positions = torch.arange(self._offset, self._offset + width, device=self.device)
            inputs["position_ids"] = positions.expand(batch.ids.shape)
        if self.readout is not None:
            # Padding is on the right, so a causal model needs no mask for it.
            return inputs | {"use_cache": False}
        mask = batch.mask
        return inputs | {"attention_mask": None if mask is None else mask.to(self.device)}

    def _raise_nonfinite(self, batch: batching.TokenBatch, row: int) -> None:
        only = slice(row, row + 1)
        single = batching.TokenBatch(batch.ids[only], batch.type_ids[only], batch.lengths[only])
        with torch.no_grad():
            module = first_nonfinite(self.core, lambda: self._run(single))
        text = self.tokenizer.decode(batch.ids[row, : int(batch.lengths[row])])
        where = f" They arise first in {module}." if module else ""
        raise NonFiniteError(
            f"{self.name} returned NaN or infinite logits for {text!r:.100}.{where} "
            "Check the weights, or load the model in float32 (dtype='float32')."
        )


def inner_model(model: nn.Module) -> PreTrainedModel:
    """The transformers model inside a PEFT wrapper, adapters still active in it; the model itself otherwise."""
    if isinstance(model, PreTrainedModel):
        return model
    from peft import PeftModel

    if not isinstance(model, PeftModel):
        raise UnsupportedError(
            f"cannot explain a {type(model).__name__}",
            ["it is not a transformers model"],
            "Pass an AutoModelForSequenceClassification, or a PEFT model of one.",
        )
    if model.active_peft_config.is_prompt_learning:
        raise UnsupportedError(
            f"cannot explain a model with {model.active_peft_config.peft_type}",
            ["its virtual tokens stand for no text"],
            "LoRA and other adapters of weights work.",
        )
    return model.get_base_model()


def decoder_head(model: PreTrainedModel) -> nn.Module | None:
    """The linear head of a decoder that classifies from its last token; None for encoders."""
    head = dict(model.named_children()).get("score")
    return head if model.base_model is not model else None


def _capabilities(model: PreTrainedModel, readout: Readout | None) -> frozenset[Capability]:
    """What the architecture allows; `raison doctor` checks that it holds."""
    found = {Capability.EMBEDDINGS} if readout is None else {Capability.EMBEDDINGS, Capability.STEP_LOGITS}
    # The head of an encoder-decoder reads the decoder: the encoder's attention has no row that predicts.
    if not model.config.is_encoder_decoder:
        with contextlib.suppress(UnsupportedError):
            attention_modules(model)
            found.add(Capability.ATTENTION)
            # Label words of several tokens are read in several passes: there is no one attention to replace.
            if readout is None or readout.branches == ((),):
                found.add(Capability.ATTENTION_PATHS)
    return frozenset(found)


def _class_names(model: PreTrainedModel) -> tuple[str, ...]:
    names = tuple(str(model.config.id2label[i]) for i in range(model.config.num_labels))
    return (f"not {names[0]}", names[0]) if len(names) == 1 else names
