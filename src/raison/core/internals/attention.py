"""Replacing a layer's attention to one text, and the model's values and gradients there."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from jaxtyping import Float, Int
from torch import Tensor

from raison.core.targets.target import Target

AttentionPath = Callable[[Sequence[int]], Float[Tensor, "points heads query key"]]
"""Points of paths through attention space, by their numbers -> attention in place of the text's own."""


@dataclass(frozen=True, slots=True)
class AttentionSlopes:
    """Some points of a path: the inserted attention, the target's value, and its gradient with respect to that
    attention.

    Attention and gradients are those of the rows that `AttentionSite.read` names.
    """

    points: tuple[int, ...]
    attention: Float[Tensor, "points heads read key"]
    gradients: Float[Tensor, "points heads read key"]
    values: Float[Tensor, " points"]


class AttentionSite(ABC):
    """One layer's attention to one text. Everything below the layer is computed once, when the site is made.

    The query axis holds only the rows from which the prediction can be reached: the one that a head reads in the last
    layer, all of them below it. Tensors lie where the model computes, in at least single precision.
    """

    layer: int
    """The number of the layer, counted from 0."""
    probabilities: Float[Tensor, "heads query key"]
    """The model's own attention, after the softmax."""
    rows: Float[Tensor, " query"]
    """How much the prediction is made from each row's position, summing to 1; see ReadableAttention.prediction_rows.

    A row without a share is replaced like the others, for its effect in higher layers, but nothing is read from it.
    """
    input_rows: Float[Tensor, " query"]
    """1 for rows of tokens that belong to a unit, 0 for those of special tokens and of a prompt."""

    @property
    def read(self) -> Int[Tensor, " read"]:
        """The rows with a share in the prediction."""
        return self.rows.nonzero()[:, 0]

    @abstractmethod
    def slopes(self, path: AttentionPath, count: int, target: Target) -> Iterator[AttentionSlopes]:
        """Values and gradients at the points 0 ... count - 1 of a path, in batches of bounded size.

        `target` is that of the one text. Costs one forward and one backward pass per point, of the layers from this one
        to the top. The attention is used as given: rows need not sum to 1, and entries may be negative.
        """
