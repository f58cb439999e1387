"""The training and validation data of an attribution model: texts, the explained model's predictions, soft masks."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from raison.core.capabilities.passes import Passes
from raison.core.inputs.unit import Merge
from raison.core.metric import Metric
from raison.core.problem import Evaluations
from raison.core.registry import label_of
from raison.core.targets.target import probabilities
from raison.explaining.attribution import explanations_of
from raison.explaining.batch import Batch
from raison.explaining.measuring import measure
from raison.masking.attribution import AttributionBatch
from raison.masking.soft import Prediction, SoftMasks
from raison.masking.substitutes import Substitutes
from raison.methods.aml import Aml
from raison.models.derived.attributor import Attributor
from raison.models.stack.eval_mode import half_precision
from raison.numerics.losses.attributive_masking import LossWeights, MaskSize
from raison.training.loop.objective import TrainingBatch


@dataclass(frozen=True, slots=True)
class RowBatches:
    """Numbers of texts in batches of similar length, in an order that depends only on the seed and the epoch.

    Implements trainer.Batches. `lengths` are in tokens.
    """

    lengths: Sequence[int]
    batch_size: int
    seed: int

    def __len__(self) -> int:
        return math.ceil(len(self.lengths) / self.batch_size)

    def epoch(self, number: int, start: int = 0) -> Iterator[TrainingBatch]:
        """The batches of epoch `number` from batch `start` on."""
        generator = torch.Generator().manual_seed(self.seed * 100_003 + number)
        order = torch.randperm(len(self.lengths), generator=generator).tolist()
        # Length classes about a fifth apart: little padding, and different batches in every epoch.
        order.sort(key=lambda row: round(4 * math.log2(self.lengths[row])))
        batches = [order[first : first + self.batch_size] for first in range(0, len(order), self.batch_size)]
        for index in torch.randperm(len(batches), generator=generator).tolist()[start:]:
            rows = torch.tensor(batches[index])
            yield TrainingBatch({"rows": rows}, rows)


class MaskedTexts(nn.Module):
    """The trainer's view: an attribution model on texts that are given by their numbers.

    The explained model is not part of the module: its weights are neither saved nor moved, and get no gradients. Its
    predictions of the whole texts were made once and are in `texts`.
    """

    def __init__(
        self, attributor: Attributor, texts: Batch, substitutes: Substitutes, merge: Merge, half: bool = False
    ) -> None:
        super().__init__()
        self.attributor = attributor
        self._texts = texts
        self._substitutes = substitutes
        self._half = half
        self._reading = AttributionBatch.of(attributor, texts.encoding, merge)
        self._wanted = probabilities(texts.full.double(), texts.model.multi_label).float()

    def forward(self, rows: Int[Tensor, " batch"], weights: LossWeights, size: MaskSize) -> Float[Tensor, " batch"]:
        """Equation 4 of each text: a pass of the attribution model and up to two of the explained one."""
        numbers = rows.tolist()
        masks = self._masks(numbers)
        with half_precision(self.attributor.prediction.device.type, self._half):
            return masks.losses(self._shares(numbers).float(), weights, size)

    def shares(self) -> Float[Tensor, "batch units"]:
        """The map of every text, without gradients: one pass of the attribution model each."""
        texts, encoding = self._texts, self._texts.encoding
        shares = torch.zeros(len(encoding), max(encoding.unit_counts), dtype=torch.float64)
        with torch.no_grad(), self.attributor.quiet():
            for rows, part in texts.model.ask(Passes).in_batches(encoding, self._shares):
                shares[rows, : part.shape[1]] = part.double().cpu()
        return shares

    def scores(self, metrics: Sequence[Metric]) -> dict[str, float]:
        """The mean of each metric over the texts, with its sign changed if lower is better.

        Perturbed texts that were evaluated before are not evaluated again.
        """
        explanations = explanations_of(self._texts, Aml(), self.shares())
        values = np.array(measure(self._texts, explanations, metrics), dtype=float)
        scores = {}
        for metric, column in zip(metrics, values.T, strict=True):
            defined = column[~np.isnan(column)]
            mean = float(defined.mean()) if len(defined) else math.nan
            scores[label_of(metric)] = mean if metric.higher_is_better else -mean
        return scores

    def _shares(self, rows: list[int]) -> Float[Tensor, "batch units"]:
        width = max(len(self._texts.encoding.units[row]) for row in rows)
        return self._reading.select(rows, width).shares(self._wanted[rows])

    def _masks(self, rows: list[int]) -> SoftMasks:
        part = self._texts.encoding.select(rows)
        prediction = Prediction(self._wanted[rows], self._texts.target.index[rows])
        learned = self.attributor.substitute
        return self._substitutes.masks(self._texts.model, part, prediction, _generators(len(rows)), learned)


def _generators(count: int) -> list[np.random.Generator]:
    """New generators at every step, seeded by torch's generator, whose state is part of the checkpoints."""
    seeds: list[int] = torch.randint(2**62, (count,)).tolist()
    return [np.random.default_rng(seed) for seed in seeds]


def afresh(texts: Batch) -> Batch:
    """The same texts with a copy of the evaluations so far."""
    known = texts.evaluations
    evaluations = Evaluations(logits=dict(known.logits), reduced=dict(known.reduced))
    return replace(texts, evaluations=evaluations, maps={}, attributed={})


def part_of(texts: Batch, rows: Sequence[int]) -> Batch:
    """Some of the texts, without predicting them again."""
    index = torch.as_tensor(list(rows))
    return replace(
        texts,
        encoding=texts.encoding.select(rows),
        target=texts.target.rows(index),
        full=texts.full[index],
        evaluations=Evaluations(),
        maps={},
        attributed={},
    )
