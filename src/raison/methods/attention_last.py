"""Attention of the last layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from raison.core.dims import Attention
from raison.integration.attention_rows import AttentionReading, Present, Queries, Rows, without_padding


@dataclass(frozen=True)
class AttentionLast(AttentionReading):
    """The attention of the last layer at the position that the prediction is made from.

    score = r . A_L, with A_L the mean over heads of the last layer's attention (query x key) and r the model's
    prediction rows: one for the last token of a decoder or the first token of a model that predicts from it, equal
    shares where the model pools a mean. Returns (batch, tokens): shares that sum to 1 over all tokens, special ones
    included, never negative.

    In an encoder-decoder the last attention is the decoder's to the encoder: other tokens of the decoder score zero.

    1 forward pass, which can be the prediction's own (the paper counts 0). Finding the prediction rows can cost the
    model one more for the whole batch.

    `queries="all"` takes the mean over the rows of all tokens instead. In a decoder, early tokens then score higher
    because more rows can see them.

    Guarantees nothing about the prediction: the scores are the same for every target, the attended states no longer
    belong to single tokens, and values and the heads' weights are ignored.

    Differences from the paper: this is the baseline A-Last of Kariyappa et al. 2024, who name only the layer and cite
    Hollenstein and Beinborn. The mean over heads and the row are choices made here.

    Reference: hollenstein2021relative; kariyappa2024progressive.
    """

    queries: Queries = "prediction"

    reference: ClassVar[str] = "hollenstein2021relative"

    def read(self, layers: Sequence[Attention], present: Present, rows: Rows) -> Rows:
        attention = without_padding(layers[-1].mean(1).cpu().double(), present)
        return (rows[:, None] @ attention)[:, 0]
