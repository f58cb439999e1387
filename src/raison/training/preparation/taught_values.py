"""The training data of an attribution model that predicts Shapley values: texts, and values of their units."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from raison.core.capabilities.passes import Passes
from raison.core.inputs.encoding import Encoding
from raison.core.model import LanguageModel
from raison.models.derived.amortized import ValueReading
from raison.models.derived.attributor import Attributor
from raison.models.stack.eval_mode import half_precision

_TINY = 1e-12
"""Values that differ by less count as equal."""


@dataclass(frozen=True, slots=True)
class TextsWithValues:
    """Texts with the explained model's probabilities, and for some classes of each the values of its units."""

    encoding: Encoding
    probabilities: Float[Tensor, "batch classes"]
    values: tuple[Mapping[int, tuple[float, ...]], ...]

    def select(self, rows: Sequence[int]) -> "TextsWithValues":
        """Some of the texts."""
        chosen = list(rows)
        values = tuple(self.values[row] for row in chosen)
        return TextsWithValues(self.encoding.select(chosen), self.probabilities[chosen], values)

    def scale(self) -> float:
        """The root mean square of all values; 1 if all are zero."""
        everything = np.concatenate([np.array(values) for known in self.values for values in known.values()])
        return float(np.sqrt((everything**2).mean())) or 1.0

    def targets(self) -> Float[Tensor, "batch units classes"]:
        """All values; NaN where none is known."""
        units, classes = max(self.encoding.unit_counts), self.probabilities.shape[1]
        table = torch.full((len(self.values), units, classes), torch.nan)
        for text, known in enumerate(self.values):
            for index, values in known.items():
                table[text, : len(values), index] = torch.tensor(values)
        return table


class ValueLessons(nn.Module):
    """The trainer's view: an attribution model on texts that are given by their numbers; values are in units of
    `scale`."""

    def __init__(self, attributor: Attributor, texts: TextsWithValues, scale: float, half: bool = False) -> None:
        super().__init__()
        self.attributor = attributor
        self._texts, self._half = texts, half
        self._reading = ValueReading.of(attributor, texts.encoding)
        self._targets = texts.targets() / scale

    def forward(
        self, rows: Int[Tensor, " batch"]
    ) -> tuple[Float[Tensor, "batch units classes"], Float[Tensor, "batch units classes"]]:
        """Predicted and target values, NaN where none is known: one pass of the attribution model for each text."""
        device = self.attributor.prediction.device
        with half_precision(device.type, self._half):
            values = self._values(rows.tolist()).float()
        return values, self._targets[rows, : values.shape[1]].to(device)

    def correlation(self, model: LanguageModel) -> float:
        """Mean over texts and classes of Pearson's correlation of predicted and estimated values, without gradients.

        Texts of one unit, or with equal values, have no correlation and are left out; NaN if all are left out.
        """
        correlations: list[float] = []
        with torch.no_grad(), self.attributor.quiet():
            for rows, part in model.ask(Passes).in_batches(self._texts.encoding, self._values):
                for number, table in zip(rows, part.double().cpu().numpy(), strict=True):
                    for index, values in self._texts.values[number].items():
                        correlations.append(_correlation(table[: len(values), index], np.array(values)))
        return float(np.nanmean(correlations)) if np.isfinite(correlations).any() else float("nan")

    def _values(self, rows: Sequence[int]) -> Float[Tensor, "batch units classes"]:
        width = max(len(self._texts.encoding.units[row]) for row in rows)
        return self._reading.select(rows, width).values(self._texts.probabilities[list(rows)])


def _correlation(predicted: Float[np.ndarray, " units"], wanted: Float[np.ndarray, " units"]) -> float:
    if len(wanted) < 2 or wanted.std() < _TINY:
        return float("nan")
    return float(np.corrcoef(predicted, wanted)[0, 1]) if predicted.std() > _TINY else 0.0
