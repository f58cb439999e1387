"""Tokenized rows in batches of similar length."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedTokenizerBase

from raison.core.inputs.unit import Text
from raison.models.tokens.max_tokens import max_tokens
from raison.text.surrogates import without_surrogates
from raison.training.loop.objective import TrainingBatch

_POOL = 50
"""Number of batches drawn at random together and then sorted by length, for little padding in a random order."""


@dataclass(frozen=True, slots=True)
class TokenBatches:
    """Rows as lists of tokens, served in batches. Implements trainer.Batches."""

    tokens: Sequence[dict[str, list[int]]]
    labels: tuple[int, ...]
    tokenizer: PreTrainedTokenizerBase
    batch_size: int
    seed: int

    def __len__(self) -> int:
        return math.ceil(len(self.tokens) / self.batch_size)

    def epoch(self, number: int, start: int = 0) -> Iterator[TrainingBatch]:
        """The batches of epoch `number` from batch `start` on, in an order set by the seed and the epoch alone."""
        generator = torch.Generator().manual_seed(self.seed * 100_003 + number)
        rows = torch.randperm(len(self.tokens), generator=generator).tolist()
        pool = self.batch_size * _POOL
        batches: list[list[int]] = []
        for first in range(0, len(rows), pool):
            ordered = sorted(rows[first : first + pool], key=self._length)
            batches += [ordered[i : i + self.batch_size] for i in range(0, len(ordered), self.batch_size)]
        for index in torch.randperm(len(batches), generator=generator).tolist()[start:]:
            yield self._batch(batches[index])

    def in_order(self) -> Iterator[tuple[list[int], TrainingBatch]]:
        """Every row once, shortest first, with the rows' numbers: for evaluation."""
        rows = sorted(range(len(self.tokens)), key=self._length)
        for first in range(0, len(rows), self.batch_size):
            chosen = rows[first : first + self.batch_size]
            yield chosen, self._batch(chosen)

    def _length(self, row: int) -> int:
        return len(self.tokens[row]["input_ids"])

    def _batch(self, rows: list[int]) -> TrainingBatch:
        padded = self.tokenizer.pad([self.tokens[row] for row in rows], return_tensors="pt")
        inputs: dict[str, Tensor] = dict(padded)
        return TrainingBatch(inputs, torch.tensor([self.labels[row] for row in rows]))


def readable(config: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase, tokens: int) -> int:
    """`tokens`, or as many as the model reads, if these are fewer."""
    most = max_tokens(config, tokenizer.model_max_length)
    return tokens if most is None else min(tokens, most)


def tokenize(tokenizer: PreTrainedTokenizerBase, texts: Sequence[Text], most: int) -> list[dict[str, list[int]]]:
    """The model's inputs of each text, cut after `most` tokens, not padded."""
    first = [without_surrogates(text if isinstance(text, str) else text[0]) for text in texts]
    second = None if all(isinstance(text, str) for text in texts) else [without_surrogates(text[1]) for text in texts]
    columns = tokenizer(first, second, truncation=True, max_length=most, padding=False)
    return [{name: columns[name][row] for name in columns} for row in range(len(texts))]
