"""Attention rollout: attention propagated through the layers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.dims import Attention
from raison.integration.attention_rows import AttentionReading, Present, Queries, Rows, without_padding
from raison.numerics.attention.context_mixing import passing, with_residual


@dataclass(frozen=True)
class AttentionRollout(AttentionReading):
    """Propagates attention through the layers, as if attention alone moved information between positions.

    score = r . B_L ... B_1 with B_l = (A_l + I) / 2, rows rescaled to sum to 1 (Abnar and Zuidema 2020, equation 1),
    A_l the mean over heads of layer l's attention (query x key) and r the model's prediction rows. Returns (batch,
    tokens): shares that sum to 1 over all tokens, special ones included, never negative.

    The layers of an encoder-decoder are the encoder's, and then, alternating, the decoder's own attention and that to
    the encoder; positions of the other stack pass on what they have. A classifier's decoder reads the text again: a
    token's score is the sum over its two positions.

    1 forward pass. Finding the prediction rows can cost the model one more for the whole batch.

    Guarantees nothing about the prediction: the scores are the same for every target, and values, feed-forward layers
    and the head are ignored.

    `residual=False` leaves out the identity: B_l = A_l. `queries="all"` takes the mean over all rows for r. Both
    together are the rollout of the thesis Assessing the Interpretability of Large Language Models, section 2.2.2.3.

    Differences from the paper: r is the first token's row for a model that predicts from it, the last token's for a
    decoder, and the mean where the model pools a mean. The paper reads the first token's row.

    Reference: abnar2020quantifying.
    """

    residual: bool = True
    queries: Queries = "prediction"

    reference: ClassVar[str] = "abnar2020quantifying"

    def read(self, layers: Sequence[Attention], present: Present, rows: Rows) -> Rows:
        # From the last layer down: a row times a matrix per layer instead of a product of matrices.
        flow = rows[:, None]
        for layer in reversed(layers):
            mixing = self._mixing(layer, present)
            flow = flow.to(mixing) @ mixing
        return flow[:, 0].cpu().double()

    def _mixing(self, attention: Attention, present: Present) -> Float[Tensor, "batch query key"]:
        """One layer's matrix B; rows and columns of padding are zero, so that nothing of it can enter the product."""
        mean = attention.mean(1)
        mean = without_padding(mean.to(torch.promote_types(mean.dtype, torch.float32)), present)
        return with_residual(mean, present) if self.residual else passing(mean)
