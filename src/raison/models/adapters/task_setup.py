"""How a model is used: the encoder of its texts, and how its outputs become classes."""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from raison.core.inputs.unit import Text
from raison.core.targets.choosing import Choosing
from raison.models.passes.forward import ForwardPasses
from raison.models.passes.outputs.heads import ClassHead, Head
from raison.models.passes.outputs.multi_input_outputs import Join
from raison.models.passes.outputs.output_layer import FoundHead
from raison.models.passes.outputs.readout import HeadReadout, Readout
from raison.models.passes.prefixes.causal_cache import CausalCache
from raison.models.stack.transformer import DECODER_HEAD, has_decoder_head
from raison.models.tokens.encoder import TextEncoder
from raison.models.tokens.max_tokens import max_tokens
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
    """Cache shared by all readouts of the same causal model."""
    probe: Callable[[str], Text] = str
    """Turns any text into one that the model accepts: after a question, or with a mask."""
    choosing: Callable[[ForwardPasses], Choosing] | None = None
    """If predictions are made at positions of a text: what finds these positions, with passes of the model."""
    border: int | None = None
    """For a generative encoder-decoder: how many tokens of a row its encoder reads; its decoder reads the others."""
    join: Join | None = None
    """How the outputs of separately encoded texts become one number; None if a text is read in one pass."""
    strings: int = 1
    """How many strings every text needs; see LanguageModel.strings."""
    kept: frozenset[str] = frozenset()
    """Names of special tokens that are these tokens in a text, too."""

    @classmethod
    def as_classifier(cls, core: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> "TaskSetup":
        """The use of a sequence classifier; a decoder's head reads the state of the last token."""
        encoder = TextEncoder(tokenizer, max_tokens(core.config, tokenizer.model_max_length))
        readout = HeadReadout(((),), FoundHead(core, attrgetter(DECODER_HEAD))) if has_decoder_head(core) else None
        return cls(encoder, ClassHead.of(core.config), readout)
