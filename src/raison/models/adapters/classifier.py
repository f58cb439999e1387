"""Any sequence classifier, and any causal language model used as one, behind the one door to a model."""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from raison.core.attention import AttentionSite
from raison.core.capabilities.decomposition import Anatomy
from raison.core.capabilities.embeddings import Path, Shift, WordEmbeddings
from raison.core.capabilities.passes import Passes, Result
from raison.core.dims import Embeddings, Logits, Points
from raison.core.encoding import Encoding
from raison.core.errors import UnsupportedError
from raison.core.model import LanguageModel
from raison.core.rules import Rules
from raison.core.target import Target
from raison.core.unit import Granularity, Text
from raison.models.adapters.capabilities import capabilities_of, withheld_from
from raison.models.adapters.offered import offered_by
from raison.models.adapters.uses import Answering, Completion, Encoder
from raison.models.anatomy.decomposition import ModelAnatomy
from raison.models.anatomy.pooling import find_pooling, prediction_rows
from raison.models.families import Pooling, family_of
from raison.models.gradients.embedding_shift import shifted_tables
from raison.models.gradients.embeddings import causal_embeddings, given_embeddings
from raison.models.gradients.path_gradients import path_gradients
from raison.models.gradients.rules.passes import RuledPasses
from raison.models.passes import batching
from raison.models.passes.causal import CausalReader
from raison.models.passes.heads import ClassHead, Head, Outputs, SpanHead
from raison.models.passes.hidden_states import Layers, hidden_states, layer_outputs
from raison.models.passes.last_row import LastRow
from raison.models.passes.precision import OwnReadout, ReducedModel
from raison.models.passes.readout import HeadReadout, Readout
from raison.models.passes.removal import (
    Remover,
    causal_removals,
    check_removal,
    placeholder_id,
    remove_all,
    replacement_ids,
    unknown_id,
)
from raison.models.passes.rerun import Reruns
from raison.models.passes.unpadded import reads_padding, unpadded
from raison.models.passes.workings import Workings
from raison.models.stack.diagnose import nonfinite_logits
from raison.models.stack.modes import evaluating
from raison.models.stack.tap import Tap, tap
from raison.models.stack.transformer import decoder_head, embedding_tables, inner_model, known_pooling
from raison.models.tokens.encoder import TextEncoder
from raison.models.tokens.limits import max_tokens


class Classifier(LanguageModel):
    """A classifier and its tokenizer, both the caller's own objects, which are not changed.

    A causal model predicts through a readout: its classification head, or label words after a prompt that `encoder`
    puts around the text. The prediction is taken from the last token that is not padding, found here from the attention
    mask: the models' own search for the pad id fails on embeddings and on texts that contain it.
    """

    def __init__(
        self,
        model: nn.Module,
        tokenizer: PreTrainedTokenizerBase,
        name: str,
        completion: Completion | Answering | None = None,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.name = name
        self.core = inner_model(model)
        self.max_tokens = max_tokens(self.core.config, tokenizer.model_max_length)
        self.readout: Readout | None = None
        self.head: Head
        workings: Workings | None = None
        if completion is None:
            self._encoder: Encoder = TextEncoder(tokenizer, self.max_tokens)
            self.head = ClassHead.of(self.core.config)
            head = decoder_head(self.core)
            self.readout = None if head is None else HeadReadout(((),), head)
        elif isinstance(completion, Answering):
            self.head, self._encoder = completion.head, completion.encoder
        else:
            self.head = ClassHead(completion.classes, multi_label=False)
            self._encoder, self.readout, workings = completion.encoder, completion.readout, completion.workings
        self.classes, self.multi_label = self.head.classes, self.head.multi_label
        self._replacements = replacement_ids(tokenizer)
        self.unknown_id = unknown_id(tokenizer)
        if self.readout is not None:
            self.removals = causal_removals(tokenizer, self._replacements)
        else:
            self.removals = tuple(self._replacements) if self.head.in_place else (*self._replacements, "delete")
        self._pooling: Pooling | None = None if self.readout is None else "last"
        accepted = inspect.signature(self.core.forward).parameters
        self.takes_types = "token_type_ids" in tokenizer.model_input_names and "token_type_ids" in accepted
        self._reads_padding = reads_padding(self.core.config)
        self._offset = family_of(self.core).position_offset if "position_ids" in accepted else 0
        workings = Workings.of(model) if workings is None and self.readout is not None else workings
        own_budget = batching.TokenBudget(batching.default_budget(self.device))
        self.budget = own_budget if workings is None else workings.budget
        self.withheld = withheld_from(self.core, self.readout, self.head)
        kinds = capabilities_of(self.withheld)
        self._pooling = self._pooling or (known_pooling(self.core) if WordEmbeddings in self.withheld else None)
        self._workings = workings
        self._packed = None if workings is None else workings.packed
        self._last_row = LastRow(self.core)
        self._reruns = Reruns(self.core, self._predict, self.budget, {} if workings is None else workings.layers)
        self._reduced: ReducedModel[Classifier] = (
            ReducedModel(model, self.core) if workings is None else workings.reduced
        )
        self.capabilities = offered_by(self, kinds)

    @property
    def device(self) -> torch.device:
        """Where the model takes its input."""
        return self.embedding_table.weight.device

    @property
    def embedding_table(self) -> nn.Module:
        """The module that maps ids to word embeddings."""
        return embedding_tables(self.core)[0]

    def encode(self, texts: Sequence[Text], unit: Granularity = "word", truncate: bool = False) -> Encoding:
        """See LanguageModel.encode. A question answering model takes one pass per text."""
        encoding = self._encoder.encode(texts, unit, truncate)
        return replace(encoding, spans=self.ask(Passes).predicted(encoding)) if self.head.in_place else encoding

    def embed(self, encoding: Encoding) -> Embeddings:
        with torch.no_grad(), self.quiet():
            return self.embedding_table(encoding.input_ids.to(self.device))

    def logits(self, encoding: Encoding, embeds: Embeddings | None = None) -> Logits:
        return self.forward(self._batch(encoding, 0), embeds)

    def logits_at(self, encoding: Encoding, embeds: Embeddings) -> Logits:
        return self.forward(self._batch(encoding, encoding.prefix_length), embeds)

    def forward(self, batch: batching.TokenBatch, embeds: Embeddings | None = None) -> Logits:
        """One differentiable pass over one batch, in at least single precision out. Raises NonFiniteError."""
        return self._checked(batch, self._predict(batch, embeds))

    def decisions(self, encoding: Encoding, embeds: Embeddings | None = None) -> Float[Tensor, "batch parts choices"]:
        batch = self._batch(encoding, 0)
        with self.quiet():
            parts = self._parts(batch, embeds)
        if batch.context is None:
            return self._checked(batch, parts[:, 0])[:, None]
        # Positions that are excluded are infinite on purpose.
        open_ = batch.context.to(parts.device)[:, None]
        self._checked(batch, torch.where(open_, parts, 0).flatten(1))
        return parts

    def _batch(self, encoding: Encoding, prefix: int) -> batching.TokenBatch:
        context = encoding.context if self.head.in_place else None
        lengths = encoding.attention_mask.sum(1)
        return batching.TokenBatch(encoding.input_ids, encoding.type_ids, lengths, prefix, context, encoding.spans)

    def _checked(self, batch: batching.TokenBatch, logits: Logits) -> Logits:
        finite = torch.isfinite(logits.detach()).all(-1)
        if not finite.all():
            self._raise_nonfinite(batch.select([finite.logical_not().nonzero()[0, 0].item()]))
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

        with torch.no_grad():
            return batching.masked_logits(encoding, keeps, remover, self.budget, lambda batch: self._brief(batch).cpu())

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
        return path_gradients(self._brief, self.budget, encoding, path, (positions, weights), target)

    def ruled_gradients(
        self, encoding: Encoding, embeds: Embeddings, rules: Rules, target: Target
    ) -> tuple[list[Float[Tensor, "_tokens hidden"]], Float[Tensor, "batch points"]]:
        return RuledPasses(self.core, self.forward, self.budget).gradients(encoding, embeds, rules, target)

    def anatomy(self) -> Anatomy:
        return ModelAnatomy(self.core, (self.readout, self.head), (self.logits, self.prediction_rows))

    def tap(
        self, layers: Sequence[int] | None = None, record: Sequence[str] = ("probabilities",)
    ) -> AbstractContextManager[Tap]:
        return tap(self.core, record, layers)

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
        if removal not in self.removals:
            raise UnsupportedError(
                f"removal '{removal}' is not possible on {self.name}",
                ["it answers with a position of the text, and a deleted token has none"],
                f"Use removal='{self.removals[0]}'.",
            )
        token = None if removal == "delete" else self._replacements[removal]
        return Remover(token, placeholder_id(self.tokenizer))

    def _finite(self, encoding: Encoding, logits: list[Tensor]) -> list[Tensor]:
        """The logits of each text. Raises NonFiniteError."""
        for text, found in enumerate(logits):
            if not torch.isfinite(found).all():
                self._raise_nonfinite(self._batch(encoding.select([text]), 0))
        return logits

    def prediction_rows(self, encoding: Encoding) -> Float[Tensor, "batch tokens"]:
        if encoding.spans is not None:
            return torch.nn.functional.one_hot(encoding.spans, encoding.input_ids.shape[1]).float().mean(1)
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

    def in_batches(self, encoding: Encoding, run: Callable[[list[int]], Result]) -> Iterator[tuple[list[int], Result]]:
        return batching.run_grouped(self.budget, encoding.lengths, run)

    def hidden_states(self, encoding: Encoding) -> list[Float[Tensor, "_tokens hidden"]]:
        with self.quiet():
            return hidden_states(encoding, self.budget, self._run_layers)

    @contextmanager
    def shifted(self, shift: Shift) -> Iterator[None]:
        """An encoder-decoder reads the text with two tables of equal rows: both move. Contexts add up when nested.

        Embeddings that are given to `logits` are taken as they are: `embed` has moved them already.
        """
        stored = contextlib.nullcontext() if self._packed is None else self._packed.uncached()
        with stored, shifted_tables(embedding_tables(self.core), shift, self.tokenizer.all_special_ids):
            yield

    def reduced(self) -> LanguageModel:
        """See ReducedPrecision.reduced. Takes 2 bytes per weight in addition to the model from the first call on."""
        return self if self.core.dtype is torch.bfloat16 else self._reduced.get(self, self._over)

    def _over(self, tree: nn.Module) -> "Classifier":
        """The same adapter over a twin of the model; the readout stays the model's own. Texts are encoded here."""
        completion: Completion | Answering | None = None
        if isinstance(self.head, SpanHead):
            completion = Answering(self, self.head)
        elif not (self.readout is None or isinstance(self.readout, HeadReadout)):
            workings = None if self._workings is None else self._workings.of_twin(tree)
            completion = Completion(self.classes, self, self.readout, workings)
        found = Classifier(tree, self.tokenizer, self.name, completion)
        found.readout = (
            None if self.readout is None else OwnReadout(self.readout.branches, self.readout, self.core.dtype)
        )
        if found._packed is not None and self._packed is not None:
            found._packed.follow(self._packed)
        return found

    def quiet(self) -> AbstractContextManager[None]:
        """Evaluation mode for the duration; modules that were training train again afterwards."""
        return evaluating(self.model)

    def _predict(self, batch: batching.TokenBatch, embeds: Embeddings | None = None) -> Logits:
        """One differentiable pass, whatever comes out."""
        with self.quiet():
            return self.head.logits(self._parts(batch, embeds), batch)

    def _brief(self, batch: batching.TokenBatch, embeds: Embeddings | None = None) -> Logits:
        """`forward` for passes that nothing looks into: an encoder's last layer is computed for what is read of it."""
        if self.readout is not None:
            return self.forward(batch, embeds)
        return self._checked(batch, self._last_row.predict(self._predict, batch, embeds))

    def _parts(
        self, batch: batching.TokenBatch, embeds: Embeddings | None = None
    ) -> Float[Tensor, "rows parts choices"]:
        """Logits of each choice, see Passes.decisions, whatever comes out."""
        return self.head.parts(self._run(batch, embeds), batch)

    def _run(self, batch: batching.TokenBatch, embeds: Embeddings | None = None) -> Outputs:
        """What the model returns; the readout's class logits where it has one."""
        if self.readout is not None:
            states = [self._states(batch, branch, embeds) for branch in self.readout.branches]
            return (self.readout.logits(states),)
        if self._reads_padding and batch.mask is not None:
            return unpadded(self._run, batch, embeds)
        given = contextlib.nullcontext()
        if embeds is not None:
            given = given_embeddings(embedding_tables(self.core), embeds, family_of(self.core).tokens_first)
        with given:
            return self.core(**self._inputs(batch))

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
        return layer_outputs(self.core, reader, self._inputs(batch))

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
        if mask is not None and self._reads_padding:
            # It subtracts the mask, which booleans do not allow.
            mask = mask.long()
        return inputs | {"attention_mask": None if mask is None else mask.to(self.device)}

    def _raise_nonfinite(self, single: batching.TokenBatch) -> None:
        with torch.no_grad(), self.quiet():
            text = self.tokenizer.decode(single.ids[0])
            raise nonfinite_logits(self.name, text, self.core, lambda: self._run(single))
