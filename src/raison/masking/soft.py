"""A batch of texts under soft masks, with the masked predictions and the losses of the masks."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from raison.core.capabilities.embeddings import WordEmbeddings
from raison.core.dims import Embeddings
from raison.core.inputs.encoding import Encoding
from raison.core.model import LanguageModel
from raison.numerics.losses.attributive_masking import (
    LossWeights,
    MaskSize,
    blend,
    inverse_loss,
    prediction_loss,
    size_loss,
)


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """The goal of the masks of some texts: the probabilities to keep, and the class to lose under the inverse mask."""

    probabilities: Float[Tensor, "batch classes"]
    classes: Int[Tensor, " batch"]

    def select(self, rows: Sequence[int]) -> "Prediction":
        """The goals of some of the texts, in the given order."""
        return Prediction(self.probabilities[list(rows)], self.classes[list(rows)])


@dataclass(frozen=True, slots=True)
class SoftMasks:
    """Texts whose units can be partly masked.

    `embeds` are the texts' word embeddings; `substitutes` are the embeddings that replace each token (or one row for
    all).
    """

    model: LanguageModel
    encoding: Encoding
    embeds: Embeddings
    substitutes: Embeddings
    prediction: Prediction

    def select(self, rows: Sequence[int]) -> "SoftMasks":
        """The same for some of the texts, in the given order."""
        part = self.encoding.select(rows)
        chosen, width = list(rows), part.input_ids.shape[1]
        one = self.substitutes.shape[:2] == (1, 1)
        substitutes = self.substitutes if one else self.substitutes[chosen, :width]
        embeds = self.embeds[chosen, :width]
        return SoftMasks(self.model, part, embeds, substitutes, self.prediction.select(chosen))

    def losses(
        self, shares: Float[Tensor, "batch units"], weights: LossWeights, kind: MaskSize
    ) -> Float[Tensor, " batch"]:
        """Equation 4 of each text, differentiable in the units' shares.

        Up to two forward passes of each text, in one batch: one masked, one inversely masked. Tokens outside of units
        are always visible.
        """
        texts, multi_label = len(self.encoding), self.model.multi_label
        masks = ([shares] if weights.prediction else []) + ([1 - shares] if weights.inverse else [])
        logits = self._logits(masks)
        total = torch.zeros(texts, dtype=logits.dtype, device=logits.device)
        if weights.prediction:
            masked = logits[:texts]
            kept = self.prediction.probabilities.to(masked)
            total = total + weights.prediction * prediction_loss(masked, kept, multi_label)
        if weights.inverse:
            inverse = logits[-texts:]
            lost = self.prediction.classes.to(inverse.device)
            total = total + weights.inverse * inverse_loss(inverse, lost, multi_label)
        if weights.size:
            total = total + weights.size * size_loss(shares, self._units(shares), kind).to(total)
        return total

    def _logits(self, masks: Sequence[Float[Tensor, "batch units"]]) -> Float[Tensor, "rows classes"]:
        """Logits of all texts under each mask, one mask after another, in one batch."""
        texts, scored = len(self.encoding), self.encoding.scored.to(self.embeds.device)
        owners = self.encoding.unit_ids.clamp_min(0).to(self.embeds.device)
        blended = [
            blend(self.embeds, self.substitutes, torch.where(scored, mask.to(owners.device).gather(1, owners), 1.0))
            for mask in masks
        ]
        return self.model.ask(WordEmbeddings).logits_at(
            self.encoding.select(list(range(texts)) * len(masks)), torch.cat(blended)
        )

    def _units(self, shares: Tensor) -> Bool[Tensor, "batch units"]:
        """Where a text has a unit."""
        counts = torch.tensor(self.encoding.unit_counts, device=shares.device)
        return torch.arange(shares.shape[1], device=shares.device)[None, :] < counts[:, None]
