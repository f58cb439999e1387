"""How a model is used: the encoder of its texts, and how its outputs become classes."""

from collections.abc import Callable
from dataclasses import dataclass

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.inputs.unit import Text
from raison.core.targets.choosing import Choosing
from raison.models.passes.forward import ForwardPasses
from raison.models.passes.outputs.heads import ClassHead, Head
from raison.models.passes.outputs.readout import HeadReadout, Readout
from raison.models.passes.outputs.reads import Join
from raison.models.passes.prefixes.causal_cache import CausalCache
from raison.models.stack.transformer import decoder_head
from raison.models.tokens.encoder import TextEncoder
from raison.models.tokens.limits import max_tokens
from raison.models.tokens.multi_input import Encoder

QUESTION = "What is a quiet pleasure?"
"""The question about any text, for question answering models."""


@dataclass(frozen=True, slots=True, eq=False)
class TaskSetup:
    """The text around the input, the choices that make a prediction, and the readout of a decoder's states.

    `readout` is None if the model's own outputs are used.
    """

    encoder: Encoder
    head: Head
    readout: Readout | None = None
    cache: CausalCache | None = None
    """Shared by all readouts of the same causal model."""
    probe: Callable[[str], Text] = str
    """Makes of any text one that the model takes: behind a question, or with a mask."""
    choosing: Callable[[ForwardPasses], Choosing] | None = None
    """Where predictions are made at places of a text: what finds these, with the model's passes."""
    border: int | None = None
    """Of an encoder-decoder that writes: how many tokens of a row its encoder reads. The others are its decoder's."""
    join: Join | None = None
    """How the outputs of what is read apart become one number; None where a text is read in one pass."""
    strings: int = 1
    """How many strings every text needs; see LanguageModel.strings."""

    @classmethod
    def as_classifier(cls, core: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> "TaskSetup":
        """The use of a sequence classifier; a decoder's head reads the state of the last token."""
        encoder = TextEncoder(tokenizer, max_tokens(core.config, tokenizer.model_max_length))
        head = decoder_head(core)
        return cls(encoder, ClassHead.of(core.config), None if head is None else HeadReadout(((),), head))
