"""The loss that an attack on an explanation minimises, and measures of its effect (the thesis's section 2.3).

a_x are the scores of a text's units, a_y those of the changed text, top_k(a) the units of the k highest scores in
falling order; among equal scores the order of the text decides.
"""

import numpy as np
from jaxtyping import Bool, Float, Int
from torch import Tensor

from raison.core.errors import InputError
from raison.numerics.measures.ranking import Convention, check_share

Units = Float[np.ndarray, " units"]

TOLERANCE = 1e-6
"""A margin of logits below this is rounding."""
_FLOOR = Convention("floor", 1)


def top_count(units: int, share: float, k: int | None) -> int:
    """The number of units that an attack pushes down: `k`, or floor(share * units), at least one.

    Raises InputError for a share outside 0..1, and a `k` below 1 or above the number of units.
    """
    if k is None:
        check_share(share)
        return _FLOOR.count(units, share)
    if not 1 <= k <= units:
        raise InputError(f"k is {k}, and there are {units} units: give k from 1 to {units}, or a share of the units.")
    return k


def top_units(scores: Units, k: int) -> Int[np.ndarray, " top"]:
    """Places of the `k` highest scores, the highest first."""
    return np.argsort(-scores, kind="stable")[:k]


def rank_change(original: Units, changed: Units, k: int) -> float:
    """The share of the first k ranks that another unit holds: 1/k sum_{i <= k} [top_k(a_x)_i != top_k(a_y)_i], 0..1.

    The thesis prints the indicator of equality; its text and its example (two of three ranks differ: 0.66) mean
    inequality.
    """
    return float(np.mean(top_units(original, k) != top_units(changed, k)))


def top_sum_change(original: Units, changed: Units, k: int) -> float:
    """sum over i in top_k(a_x) of a_x,i - a_y,i: how far the highest scores fall together, in units of the score."""
    top = top_units(original, k)
    return float(np.sum(original[top] - changed[top]))


def probability_change(original: float, changed: float) -> float:
    """p(x) - p(y) of the explained class: positive if it decreased."""
    return original - changed


def attack_loss(
    top_sums: Float[Tensor, " rows"],
    changes: Float[Tensor, " rows"],
    alpha: Float[Tensor, " rows"],
    beta: Float[Tensor, " rows"],
) -> Float[Tensor, " rows"]:
    """alpha * sum of the original top units' scores + beta * (p(x) - p(y))^2, what an attack minimises.

    The thesis maximises the negative. beta is 0 for the unconstrained objective. `changes` are p(x) - p(y).
    """
    return alpha * top_sums + beta * changes.square()


def same_prediction(
    original: Float[Tensor, "rows classes"], changed: Float[Tensor, "rows classes"], multi_label: bool
) -> Bool[Tensor, " rows"]:
    """Whether the class of the greatest logit is the same; with several labels, whether every decision is the same."""
    if multi_label:
        return ((original > 0) == (changed > 0)).all(-1)
    return original.argmax(-1) == changed.argmax(-1)


def on_boundary(logits: Float[Tensor, "rows classes"], multi_label: bool) -> Bool[Tensor, " rows"]:
    """Whether a margin is below `TOLERANCE`: that of the two greatest logits, or of any label's own logit.

    There, rounding would decide whether the prediction counts as the same.
    """
    if multi_label:
        return (logits.abs() < TOLERANCE).any(-1)
    greatest = logits.topk(2, dim=-1).values
    return greatest[:, 0] - greatest[:, 1] < TOLERANCE
