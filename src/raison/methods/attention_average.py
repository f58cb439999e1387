"""Attention averaged over the layers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch

from raison.core.dims import Attention
from raison.integration.attention_rows import AttentionReading, Present, Queries, Rows, without_padding


@dataclass(frozen=True)
class AttentionAverage(AttentionReading):
    """The attention that each token gets, averaged over layers, heads and attending tokens.

    score_i = 1 / (L H T) sum_l sum_h sum_j A_lhji over layers l, heads h and all tokens j of the text, special ones
    included (the equation of section 2.2.2.3 of the thesis Assessing the Interpretability of Large Language Models).
    Returns (batch, tokens): shares that sum to 1 over all tokens, never negative.

    In an encoder-decoder j runs over the positions of both stacks, and L is, for each position, the number of layers in
    which it attends: an encoder's, or a decoder's own ones and those to the encoder. A classifier's decoder reads the
    text again: a token's score is the sum over its two positions.

    1 forward pass, which can be the prediction's own.

    `queries="prediction"` averages only over the rows that the model predicts from: the last token's of a decoder, the
    first token's of a model that predicts from it.

    Guarantees nothing about the prediction: the scores are the same for every target, and deeper layers attend to
    states that no longer belong to single tokens. In a decoder, early tokens score higher because more rows can see
    them.

    Differences from the thesis: none.

    Reference: oxford2022assessing.
    """

    queries: Queries = "all"

    reference: ClassVar[str] = "oxford2022assessing"

    def read(self, layers: Sequence[Attention], present: Present, rows: Rows) -> Rows:
        means = [without_padding(attention.mean(1).cpu().double(), present) for attention in layers]
        # A position of one of two stacks attends in some layers only.
        counts = torch.stack([mean.sum(-1) > 0 for mean in means]).sum(0).clamp_min(1)
        return sum((((rows / counts)[:, None] @ mean)[:, 0] for mean in means), torch.zeros_like(rows))
