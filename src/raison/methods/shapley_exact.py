"""Shapley values from all subsets of units."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from raison.core.errors import InputError
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.problem import Problem
from raison.core.settings.fields import Setting
from raison.numerics.shapley.orders import all_coalitions, exact_shapley

MOST = 24


@dataclass(frozen=True)
class ShapleyExact(Method):
    """The exact Shapley values: the effect of adding each unit to every set of the others, with Shapley's weights.

    phi_i = sum over S without i of |S|! (n - |S| - 1)! / n! (v(S with i) - v(S)) (Shapley 1953). Returns (batch,
    units), signed, in units of the target.

    2^n forward passes; those of all texts are batched together. A text of more than `limit` units is refused: 16 units
    take 65 536 passes, and each further unit doubles them.

    Guarantees the sum v(all) - v(empty), and zero for a unit that changes nothing, up to rounding; nothing about what a
    removed unit should be replaced by.

    Differences from the paper: none.

    Reference: shapley1953value.
    """

    limit: Annotated[
        int,
        Setting(least=1, most=MOST, words=f"a whole number from 1 to {MOST}, since n units need 2^n forward passes"),
    ] = 16

    reference: ClassVar[str] = "shapley1953value"
    properties: ClassVar[frozenset[Property]] = frozenset({Property.SIGNED, Property.COMPLETE, Property.DUMMY})
    passes: ClassVar[str] = "2^n forward"

    @property
    def most_units(self) -> int:
        return self.limit

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        counts = problem.encoding.unit_counts
        if max(counts) > self.limit:
            raise InputError(
                f"shapley_exact evaluates all 2^n subsets of units, and a text here has {max(counts)} units, more than "
                f"its limit of {self.limit}. Use kernel_shap or shapley_sampling, coarser units (unit='sentence'), or "
                "a higher limit."
            )
        values_of = problem.values([torch.from_numpy(all_coalitions(n)) for n in counts])
        return pad_sequence([torch.from_numpy(exact_shapley(values.numpy())) for values in values_of], batch_first=True)

    def cost(self, units: int) -> Cost:
        return Cost(forwards=2**units)
