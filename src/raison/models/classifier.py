"""Any AutoModelForSequenceClassification, encoder or decoder, behind the one door to a model."""

import contextlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.dims import Embeddings, Logits, Points
from raison.core.encoding import Encoding
from raison.core.errors import NonFiniteError, UnsupportedError
from raison.core.model import Capability, LanguageModel, Path, Shift
from raison.core.target import Target
from raison.core.unit import Granularity, Text
from raison.models import batching
from raison.models.diagnose import first_nonfinite
from raison.models.encoder import TextEncoder
from raison.models.families import Pooling, family_of
from raison.models.gradients import path_gradients
from raison.models.hidden import Layers, hidden_states
from raison.models.limits import max_tokens
from raison.models.pooling import find_pooling, prediction_rows
from raison.models.removal import Remover, check_removal, placeholder_id, remove_all, replacement_ids
from raison.models.shift import shifted_tables
from raison.models.tap import Tap, attention_modules, tap


class Classifier(LanguageModel):
    """A sequence classifier and its tokenizer, both the caller's own objects and left as they are.

    Decoder heads take the prediction from the last token that is not padding, found here from the attention mask:
    the models' own search for the pad id fails on embeddings and on texts that contain it.
    """

    def __init__(self, model: nn.Module, tokenizer: PreTrainedTokenizerBase, name: str) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.name = name
        self.core = inner_model(model)
        self.multi_label = self.core.config.problem_type == "multi_label_classification"
        self._single = self.core.config.num_labels == 1
        self.classes = _class_names(self.core)
        self.max_tokens = max_tokens(self.core.config, tokenizer.model_max_length)
        self._encoder = TextEncoder(tokenizer, self.max_tokens)
        self._replacements = replacement_ids(tokenizer)
        self.removals = (*self._replacements, "delete")
        self.score_head = decoder_head(self.core)
        self._pooling: Pooling | None = None if self.score_head is None else "last"
        accepted = inspect.signature(self.core.forward).parameters
        self.takes_types = "token_type_ids" in tokenizer.model_input_names and "token_type_ids" in accepted
        self._offset = family_of(self.core).position_offset if "position_ids" in accepted else 0
        self.budget = batching.TokenBudget(batching.default_budget(self.device))
        self.capabilities = _capabilities(self.core)

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

    def forward(self, batch: batching.TokenBatch, embeds: Embeddings | None = None) -> Logits:
        """One differentiable pass over one batch, in at least single precision out. Raises NonFiniteError."""
        with self.quiet(), self._embeddings(embeds):
            logits = self._run(batch)
            if self._single:
                # One output is a logistic model: the second class is "not", with logit zero.
                logits = torch.cat([torch.zeros_like(logits), logits], dim=-1)
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
        check_removal(removal, self._replacements)
        token = None if removal == "delete" else self._replacements[removal]
        remover = Remover(token, placeholder_id(self.tokenizer))

        def forward(batch: batching.TokenBatch) -> Tensor:
            return self.forward(batch).cpu()

        with torch.no_grad():
            return batching.masked_logits(encoding, keeps, remover, self.budget, forward)

    def path_gradients(
        self, encoding: Encoding, path: Path, positions: Points, weights: Points, target: Target
    ) -> tuple[list[Float[Tensor, "_tokens hidden"]], Float[Tensor, "batch points"]]:
        return path_gradients(self.forward, self.budget, encoding, path, (positions, weights), target)

    def tap(self, layers: Sequence[int] | None = None) -> AbstractContextManager[Tap]:
        return tap(self.core, layers=layers)

    def prediction_rows(self, encoding: Encoding) -> Float[Tensor, "batch tokens"]:
        if self._pooling is None:
            self._pooling = find_pooling(self.core, encoding.select([0]), self._grown_logits)
        return prediction_rows(self._pooling, encoding)

    def _grown_logits(self, encoding: Encoding) -> Logits:
        """Logits with a graph behind them even where every parameter is frozen."""
        return self.logits(encoding, self.embed(encoding).requires_grad_())

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
        with shifted_tables(tables, shift, self.tokenizer.all_special_ids):
            yield

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Evaluation mode for the duration; modules that were training train again afterwards."""
        training = [module for module in self.model.modules() if module.training]
        for module in training:
            module.training = False
        try:
            yield
        finally:
            for module in training:
                module.training = True

    @contextmanager
    def _embeddings(self, embeds: Embeddings | None) -> Iterator[None]:
        """Let the embedding table return `embeds`: ids still decide on positions, padding and pooling.

        An encoder-decoder classifier reads the text twice, in its decoder one position later.
        """
        if embeds is None:
            yield
            return
        pending: list[tuple[nn.Module, Callable[[Tensor], Tensor]]] = [(self.embedding_table, embeds.to)]
        if self.core.config.is_encoder_decoder:
            decoder = self.core.get_decoder().get_input_embeddings()
            pending.append((decoder, lambda start: torch.cat([start[:, :1], embeds[:, :-1].to(start)], dim=1)))

        def replace(module: nn.Module, _args: object, output: Tensor) -> Tensor:
            if pending and pending[0][0] is module:
                return pending.pop(0)[1](output)
            return output

        handles = [module.register_forward_hook(replace) for module in {module for module, _ in pending}]
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _run(self, batch: batching.TokenBatch) -> Tensor:
        inputs = self._inputs(batch)
        if self.score_head is None:
            return self.core(**inputs)[0]
        # Only the last token's state reaches the head.
        hidden = self.core.base_model(**inputs)[0]
        last = batch.lengths.to(hidden.device) - 1
        return self.score_head(hidden[torch.arange(len(hidden), device=hidden.device), last])

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
        if self.score_head is not None:
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


def _capabilities(model: PreTrainedModel) -> frozenset[Capability]:
    """What the architecture allows; `raison doctor` checks that it holds."""
    found = {Capability.EMBEDDINGS}
    # The head of an encoder-decoder reads the decoder: the encoder's attention has no row that predicts.
    if not model.config.is_encoder_decoder:
        with contextlib.suppress(UnsupportedError):
            attention_modules(model)
            found.add(Capability.ATTENTION)
    return frozenset(found)


def _class_names(model: PreTrainedModel) -> tuple[str, ...]:
    names = tuple(str(model.config.id2label[i]) for i in range(model.config.num_labels))
    return (f"not {names[0]}", names[0]) if len(names) == 1 else names
