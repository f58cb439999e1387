"""How a language model reads a prompt and continues it: as one sequence, or with an encoder and a decoder."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from threading import Lock
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.errors import LoadError
from raison.core.inputs.parts import PartedText
from raison.models.adapters.task_setup import TaskSetup
from raison.models.passes.encoder_decoder import EncoderDecoder
from raison.models.passes.outputs.heads import ClassHead
from raison.models.passes.outputs.readout import TokenReadout
from raison.models.passes.prefixes.causal_cache import CausalCache
from raison.models.passes.removal import special_names
from raison.models.tokens.continuation import ContinuationEncoder, TokenizedPrompt, plain_prompt, source_prompt
from raison.models.tokens.own_tokenizer import own_tokenizer
from raison.text.segment import CharacterSpan

_LOCK = Lock()


class NextTokenModel(ABC):
    """One model's tokens of prompts, and its predictions after them. Ids are those of a prompt, then of an output."""

    @abstractmethod
    def prompt(self, given: str | PartedText, untrusted: Sequence[CharacterSpan]) -> TokenizedPrompt:
        """A text as the model reads it; special tokens' names in its untrusted characters are plain text.

        Raises InputError.
        """

    @abstractmethod
    def start(self, prompt: TokenizedPrompt) -> dict[str, Tensor]:
        """The arguments of `generate` for a prompt. What it returns begins with the last of them."""

    @abstractmethod
    def states(self, ids: Int[Tensor, "1 tokens"], border: int | None) -> Float[Tensor, "1 tokens hidden"]:
        """Last hidden states; `border` is the prompt's."""

    @abstractmethod
    def logits(self, ids: Int[Tensor, "1 tokens"], border: int | None) -> Float[Tensor, "1 reads vocabulary"]:
        """The model's own logits after all tokens, or after those of its decoder."""

    @abstractmethod
    def use(self, rows: ContinuationEncoder, head: ClassHead, readout: TokenReadout) -> TaskSetup:
        """The use of the model as a predictor of an output's tokens."""


class CausalTokens(NextTokenModel):
    """A causal language model: prompt and output are one sequence."""

    def __init__(self, core: PreTrainedModel, model: nn.Module, tokenizer: PreTrainedTokenizerBase) -> None:
        self._core = core
        self._tokenizer = own_tokenizer(tokenizer)
        self._cache = CausalCache.of(model)

    def prompt(self, given: str | PartedText, untrusted: Sequence[CharacterSpan]) -> TokenizedPrompt:
        return plain_prompt(self._tokenizer, given, untrusted)

    def start(self, prompt: TokenizedPrompt) -> dict[str, Tensor]:
        ids = torch.tensor([prompt.ids], device=self._core.device)
        return {"attention_mask": torch.ones_like(ids), "inputs": ids}

    def states(self, ids: Int[Tensor, "1 tokens"], border: int | None) -> Float[Tensor, "1 tokens hidden"]:
        states: Tensor = self._core.base_model(input_ids=ids, use_cache=False)[0]
        return states

    def logits(self, ids: Int[Tensor, "1 tokens"], border: int | None) -> Float[Tensor, "1 reads vocabulary"]:
        logits: Tensor = self._core(input_ids=ids, use_cache=False).logits
        return logits

    def use(self, rows: ContinuationEncoder, head: ClassHead, readout: TokenReadout) -> TaskSetup:
        return TaskSetup(rows, head, readout, self._cache, kept=special_names(self._tokenizer))


class EncoderDecoderTokens(NextTokenModel):
    """An encoder-decoder: its encoder reads the prompt, its decoder begins with given tokens."""

    def __init__(self, core: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, name: str) -> None:
        """Raises LoadError if the start token is unknown."""
        self._core = core
        self._tokenizer = own_tokenizer(tokenizer)
        self._start = (_start_token(core, name), *_beginning(core, tokenizer))

    def prompt(self, given: str | PartedText, untrusted: Sequence[CharacterSpan]) -> TokenizedPrompt:
        return source_prompt(self._tokenizer, given, self._start, untrusted)

    def start(self, prompt: TokenizedPrompt) -> dict[str, Tensor]:
        ids = torch.tensor([prompt.ids], device=self._core.device)
        source = ids[:, : prompt.border]
        return {
            "attention_mask": torch.ones_like(source),
            "inputs": source,
            "decoder_input_ids": ids[:, prompt.border :],
        }

    def states(self, ids: Int[Tensor, "1 tokens"], border: int | None) -> Float[Tensor, "1 tokens hidden"]:
        assert border is not None, "a prompt of another model"
        return EncoderDecoder(self._core, border).states(ids)

    def logits(self, ids: Int[Tensor, "1 tokens"], border: int | None) -> Float[Tensor, "1 reads vocabulary"]:
        given: Any = {"input_ids": ids[:, :border], "decoder_input_ids": ids[:, border:]}
        logits: Tensor = self._core(**given, use_cache=False).logits
        return logits

    def use(self, rows: ContinuationEncoder, head: ClassHead, readout: TokenReadout) -> TaskSetup:
        return TaskSetup(rows, head, readout, border=rows.prompt.border, kept=special_names(self._tokenizer))


def _start_token(core: PreTrainedModel, name: str) -> int:
    """The token that the decoder begins with."""
    settings = core.generation_config
    for token in (settings.decoder_start_token_id, core.config.to_dict().get("decoder_start_token_id")):
        if isinstance(token, int):
            return token
    raise LoadError(
        f"'{name}' does not say which token its decoder begins with: set decoder_start_token_id in its "
        "generation_config."
    )


def _beginning(core: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> Sequence[int]:
    """The tokens that every output begins with: a token that the model is forced to write, or the tokenizer's own.

    BART's begins with <s>, a translator's with a language.
    """
    forced = core.generation_config.forced_bos_token_id
    if forced is not None:
        return [forced]
    # Some tokenizers switch to the target language during the call.
    with _LOCK:
        encoded = own_tokenizer(tokenizer, "targets")(text_target="a")
    owners: list[int | None] = encoded.sequence_ids(0)
    length = next((number for number, owner in enumerate(owners) if owner is not None), 0)
    ids: list[int] = encoded["input_ids"][:length]
    return ids


def next_tokens(
    core: PreTrainedModel, model: nn.Module, tokenizer: PreTrainedTokenizerBase, name: str
) -> NextTokenModel:
    """How this model continues prompts; `core` is the transformers model inside `model`."""
    if core.config.is_encoder_decoder:
        return EncoderDecoderTokens(core, tokenizer, name)
    return CausalTokens(core, model, tokenizer)
