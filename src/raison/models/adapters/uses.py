"""How a model is used: the encoder of its texts, and how its outputs become classes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.encoding import Encoding
from raison.core.parts import Given
from raison.core.unit import Granularity
from raison.models.passes.causal_cache import CausalCache
from raison.models.passes.heads import ClassHead, Head
from raison.models.passes.readout import HeadReadout, Readout
from raison.models.stack.transformer import decoder_head
from raison.models.tokens.encoder import TextEncoder
from raison.models.tokens.limits import max_tokens


@runtime_checkable
class Encoder(Protocol):
    """Texts to encodings."""

    def encode(self, texts: Sequence[Given], unit: Granularity, truncate: bool) -> Encoding:
        """See LanguageModel.encode."""


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """The text around the input, the choices that make a prediction, and the readout of a decoder's states.

    `readout` is None if the model's own outputs are used.
    """

    encoder: Encoder
    head: Head
    readout: Readout | None = None
    cache: CausalCache | None = None
    """Shared by all readouts of the same causal model."""
    border: int | None = None
    """Of an encoder-decoder that writes: how many tokens of a row its encoder reads. The others are its decoder's."""

    @classmethod
    def as_classifier(cls, core: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> "Use":
        """The use of a sequence classifier; a decoder's head reads the state of the last token."""
        encoder = TextEncoder(tokenizer, max_tokens(core.config, tokenizer.model_max_length))
        head = decoder_head(core)
        return cls(encoder, ClassHead.of(core.config), None if head is None else HeadReadout(((),), head))
