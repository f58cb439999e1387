"""Maps of an attribution model, as it is and after fine-tuning on each text."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from raison.core.inputs.encoding import Encoding
from raison.core.inputs.unit import Merge
from raison.masking.soft import SoftMasks
from raison.models.derived.attributor import Attributor
from raison.models.tokens.alignment import Alignment, align
from raison.numerics.losses.attributive_masking import LossWeights, MaskSize


@dataclass(frozen=True, slots=True)
class AttributionBatch:
    """Texts as an attribution model reads them, and how its tokens map to the explained units."""

    attributor: Attributor
    tokens: Encoding
    alignment: Alignment
    merge: Merge

    @classmethod
    def of(cls, attributor: Attributor, encoding: Encoding, merge: Merge) -> "AttributionBatch":
        """The texts and units of an encoding of the explained model."""
        tokens = attributor.encode(encoding.texts)
        return cls(attributor, tokens, align(tokens, encoding.units), merge)

    def select(self, rows: Sequence[int], units: int) -> "AttributionBatch":
        """The same for some of the texts; none of them has more than `units` units."""
        return AttributionBatch(
            self.attributor, self.tokens.select(rows), self.alignment.select(rows, units), self.merge
        )

    def shares(
        self, wanted: Float[Tensor, "batch classes"], parameters: dict[str, Tensor] | None = None
    ) -> Float[Tensor, "batch units"]:
        """How much of each unit stays, between 0 and 1: one pass of the attribution model."""
        with self.attributor.alone():
            if parameters is None:
                scores = self.attributor(self.tokens, wanted)
            else:
                scores = self.attributor.with_parameters(parameters, self.tokens, wanted)
        return self.alignment.merged(scores, self.merge)


@dataclass(frozen=True, slots=True)
class Tuning:
    """How an attribution model is fine-tuned on a text: AdamW, the rate falling linearly to zero after `steps`."""

    steps: int
    learning_rate: float
    weights: LossWeights
    size: MaskSize
    weight_decay: float = 0.01


def tuned_maps(reading: AttributionBatch, masks: SoftMasks, tuning: Tuning) -> Iterator[Float[Tensor, "batch units"]]:
    """The map of every text before each step of its fine-tuning and after the last: steps + 1 maps.

    Every text has its own copy of the tuned parameters. Low-rank parameters are stacked, so that all texts are tuned at
    once. A text's map does not depend on the other texts, because losses are summed and AdamW updates each number on
    its own. An attribution model whose weights are all trained takes one text at a time. A step costs a forward and a
    backward pass of the attribution model and of each masked text.
    """
    rows = (len(masks.encoding),) if reading.attributor.stacks else ()
    with reading.attributor.alone():
        tuned = reading.attributor.tuned()
    parameters = {name: p.detach().expand(*rows, *p.shape).clone().requires_grad_() for name, p in tuned.items()}
    optimizer = torch.optim.AdamW(parameters.values(), lr=tuning.learning_rate, weight_decay=tuning.weight_decay)
    for step in range(tuning.steps):
        for group in optimizer.param_groups:
            group["lr"] = tuning.learning_rate * (tuning.steps - step) / tuning.steps
        with torch.enable_grad():
            shares = reading.shares(masks.prediction.probabilities, parameters)
            loss = masks.losses(shares, tuning.weights, tuning.size).sum()
            # Without gradients of the explained model's parameters, which belong to the caller.
            gradients = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
        yield shares.detach()
        for parameter, gradient in zip(parameters.values(), gradients, strict=True):
            parameter.grad = gradient
        optimizer.step()
    with torch.no_grad():
        yield reading.shares(masks.prediction.probabilities, parameters)
