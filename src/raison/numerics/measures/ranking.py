"""The published conventions for counting "the top k %" of units and for averaging scores over several k."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Bool

from raison.core.errors import InputError
from raison.core.settings.fields import Setting

Share = Annotated[float, Setting(above=0, most=1, words="a share of the units, above 0 and at most 1")]
Shares = Annotated[
    tuple[float, ...],
    Setting(above=0, most=1, fewest=1, words="a list of shares of the units, each above 0 and at most 1"),
]
SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)
"""The shares of units over which the papers average."""


@dataclass(frozen=True, slots=True)
class Convention:
    """One published way to compute a faithfulness score.

    `rounding` of share * units is "round" (half up), "ceil" or "floor"; `minimum` is the smallest number of units.
    `extra_divisor` is added to the number of shares when averaging. `empty_sufficiency` is the score where no unit
    is kept; None means that the prediction from no unit is evaluated like any other.
    """

    rounding: str
    minimum: int
    extra_divisor: int = 0
    empty_sufficiency: float | None = None

    def count(self, units: int, share: float) -> int:
        """Number of units among the top `share` of `units`."""
        exact = share * units
        # 0.2 * 15 is 3.0000000000000004: such errors are removed before the product is rounded.
        exact = round(exact, 9)
        counts = {"round": math.floor(exact + 0.5), "ceil": math.ceil(exact), "floor": math.floor(exact)}
        return min(units, max(self.minimum, counts[self.rounding]))

    def average(self, values: Sequence[float]) -> float:
        """Mean over the shares, with the convention's divisor."""
        return sum(values) / (len(values) + self.extra_divisor)


Profile = Literal["printed", "eraser", "aml_code", "unirex"]
PROFILES: dict[Profile, Convention] = {
    # The definitions as printed in the papers: 1/|B|; they print no rounding, so the nearest, and never nothing.
    "printed": Convention("round", 1),
    # ERASER's code: ceil, plain average.
    "eraser": Convention("ceil", 0),
    # The AML and RPI code: floor without a minimum, sum/(|B|+1), sufficiency 0 where nothing is kept.
    "aml_code": Convention("floor", 0, extra_divisor=1, empty_sufficiency=0.0),
    # UNIREX: nearest, at least one, sum/(|B|+1).
    "unirex": Convention("round", 1, extra_divisor=1),
}


def check_share(share: float) -> None:
    """Raise InputError unless 0 < share <= 1."""
    if not 0 < share <= 1:
        raise InputError(f"share is a fraction of the units, above 0 and at most 1; got {share}.")


def top_keeps(order: Sequence[int], counts: Sequence[int], keep_top: bool) -> Bool[np.ndarray, "masks units"]:
    """One keep per count: the first `count` units of `order` are kept (keep_top) or removed."""
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[list(order)] = np.arange(len(order))
    top = ranks[None, :] < np.asarray(counts)[:, None]
    return top if keep_top else ~top
