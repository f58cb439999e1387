"""A language model with a closed-form answer: it writes words that it has read.

The logit of a word is STRENGTH if it is anywhere before, and 0 if it is not: its probability after n different words of
a vocabulary of V is e^s / (n e^s + V - n). A word of the answer that stands in one source alone is copied from it.
"""

import math
from collections.abc import Iterable

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerFast
from transformers.modeling_outputs import BaseModelOutput, CausalLMOutput

from raison.models.adapters.writing.generator import Generator

STRENGTH = 4.0


class CopyingConfig(PreTrainedConfig):
    model_type = "copying"

    def __init__(self, vocab_size: int = 10, **values: object) -> None:
        super().__init__(**values)
        self.vocab_size, self.hidden_size, self.num_hidden_layers = vocab_size, vocab_size, 0


class Seen(PreTrainedModel):
    """Hidden states that say which words were read."""

    config_class = CopyingConfig

    def __init__(self, config: CopyingConfig) -> None:
        super().__init__(config)
        self.words = nn.Embedding(config.vocab_size, config.vocab_size)
        self.words.weight.data = torch.eye(config.vocab_size)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.words

    def _init_weights(self, module: nn.Module) -> None:
        pass

    def forward(self, input_ids: Tensor, **_: object) -> BaseModelOutput:
        return BaseModelOutput(last_hidden_state=self.words(input_ids).cumsum(1).clamp_max(1))


class CopyingModel(PreTrainedModel):
    config_class = CopyingConfig
    base_model_prefix = "model"

    def __init__(self, config: CopyingConfig) -> None:
        super().__init__(config)
        self.model = Seen(config)
        self.head = nn.Linear(config.vocab_size, config.vocab_size, bias=False)
        self.head.weight.data = STRENGTH * torch.eye(config.vocab_size)
        self.post_init()

    def _init_weights(self, module: nn.Module) -> None:
        pass

    def get_input_embeddings(self) -> nn.Module:
        return self.model.words

    def get_output_embeddings(self) -> nn.Module:
        return self.head

    def forward(self, input_ids: Tensor, **_: object) -> CausalLMOutput:
        return CausalLMOutput(logits=self.head(self.model(input_ids)[0]))


def copying_writer(texts: Iterable[str]) -> Generator:
    """A model that knows the words of these texts, split at white space."""
    words = {word: number for number, word in enumerate(["[UNK]", *dict.fromkeys(" ".join(texts).split())])}
    inner = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    inner.pre_tokenizer = WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="[UNK]")
    return Generator(CopyingModel(CopyingConfig(len(words))).eval(), tokenizer, "copying")


def log_probability(answer: list[str], before: list[str], vocabulary: int) -> float:
    """Of an answer's words, one after the other, after the words before them."""
    total, read = 0.0, set(before)
    for word in answer:
        share = len(read) * math.exp(STRENGTH) + vocabulary - len(read)
        total += (STRENGTH if word in read else 0.0) - math.log(share)
        read.add(word)
    return total
