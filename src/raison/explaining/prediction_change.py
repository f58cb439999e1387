"""Whether a changed text, or changed embeddings, keep a prediction: a class, labels, or one number.

The log-probability of a statement that a language model wrote counts as a number.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from raison.core.model import LanguageModel
from raison.core.problem import Ledger, Problem
from raison.core.targets.ranking import is_ranked
from raison.core.targets.target import Target, probabilities
from raison.explaining.batch import Batch
from raison.numerics.measures.attacks import on_boundary, same_prediction

ROOM = 0.05
"""A number counts as unchanged if it moves by at most this share of the whole text's effect on it."""
LEAST = 1e-6
"""A number or difference below this is a rounding error."""

Rows = Float[Tensor, " rows"]


@dataclass(frozen=True, slots=True, eq=False)
class Predicted:
    """The predictions of some rows before anything is changed, in double precision on the CPU."""

    logits: Float[Tensor, "rows classes"]
    index: Int[Tensor, " rows"]
    """The explained class."""
    multi_label: bool
    effect: Rows | None
    """For a number: the difference between the full text and the text without its units. None for classes."""
    ranks: bool
    """The number is the difference between two documents' numbers, whose sign gives their order."""

    def value(self, logits: Float[Tensor, "rows classes"]) -> Rows:
        """The probability of the explained class, or the number in its own units."""
        return _values(logits, self.index, self.multi_label, self.effect is not None)

    def lost(self, logits: Float[Tensor, "rows classes"]) -> Rows:
        """By how much the probability falls, or the number as a share of the text's effect on it; differentiable."""
        fall = self.value(self.logits) - self.value(logits)
        return fall if self.effect is None else fall / self.effect.clamp(min=LEAST)

    def within(self, logits: Float[Tensor, "rows classes"], tolerance: float) -> Bool[Tensor, " rows"]:
        """Whether the probability moves by at most `tolerance`, or the number by that share of the text's effect.

        The order of two documents has to stay as well.
        """
        moved = (self.value(logits) - self.value(self.logits)).abs()
        if self.effect is None:
            return moved <= tolerance
        steady = moved <= tolerance * self.effect
        return steady & ((logits[:, 0] > 0) == (self.logits[:, 0] > 0)) if self.ranks else steady

    def same(self, logits: Float[Tensor, "rows classes"]) -> Bool[Tensor, " rows"]:
        """Whether the class is the same, or every label's decision; for a number, whether it stays within ROOM."""
        if self.effect is None:
            return same_prediction(self.logits, logits, self.multi_label)
        return self.within(logits, ROOM)

    def undecided(self) -> Bool[Tensor, " rows"]:
        """Whether rounding errors would decide what counts as the same: at a tie of classes, or without any effect."""
        if self.effect is None:
            return on_boundary(self.logits, self.multi_label)
        equal = self.logits[:, 0].abs() < LEAST
        return (self.effect < LEAST) | equal if self.ranks else self.effect < LEAST

    def select(self, rows: Sequence[int]) -> "Predicted":
        """Some of the rows, each as often as it is named."""
        kept = list(rows)
        effect = None if self.effect is None else self.effect[kept]
        return replace(self, logits=self.logits[kept], index=self.index[kept], effect=effect)


def predicted(batch: Batch) -> Predicted:
    """The predictions of a batch of texts; a model with one number needs one more pass per text."""
    full, number = batch.full.double(), _is_number(batch.model)
    ranks = number and all(is_ranked(text) for text in batch.encoding.texts)
    return Predicted(full, batch.target.index, batch.model.multi_label, _effects(batch) if number else None, ranks)


def explained_values(batch: Batch) -> Rows:
    """For each text, the probability of the explained class, or the number in its own units."""
    model = batch.model
    return _values(batch.full.double(), batch.target.index, model.multi_label, _is_number(model))


def _is_number(model: LanguageModel) -> bool:
    """Whether the first logit is what counts: a number, or a log-probability."""
    return model.outputs in ("number", "statement")


def _values(logits: Tensor, index: Tensor, multi_label: bool, number: bool) -> Rows:
    return logits[:, 0] if number else probabilities(logits, multi_label).gather(1, index[:, None])[:, 0]


def _effects(batch: Batch) -> Rows:
    counts = batch.encoding.unit_counts
    target = Target(torch.zeros(len(counts), dtype=torch.long), None, "logit")
    ledger = Ledger.empty(len(counts))
    problem = Problem(batch.model, batch.encoding, target, batch.removal, ledger, batch.evaluations)
    ends = problem.values([torch.tensor([[True], [False]]).expand(2, count) for count in counts])
    return torch.stack([(full - empty).abs() for full, empty in ends])
