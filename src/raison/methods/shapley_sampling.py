"""Shapley values from sampled orders of the units."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from raison.core.errors import InputError
from raison.core.method import Cost, Method, Property, Rngs
from raison.core.problem import Problem
from raison.core.settings.fields import Setting
from raison.numerics.shapley.budget import FORMULA, IN_WORDS, Samples, usual_samples
from raison.numerics.shapley.orders import (
    Orders,
    all_coalitions,
    arrivals,
    contributions,
    draw_orders,
    exact_shapley,
    standard_errors,
)

TextOrders = Int[np.ndarray, "_orders _units"]
ROUND = 8
"""Orders (four pairs) between two checks of the standard error."""


@dataclass(frozen=True)
class ShapleySampling(Method):
    """The effect of adding each unit, averaged over random orders of adding the units.

    phi_i = 1/m sum over orders of v(units up to i) - v(units before i) (Castro et al. 2009, ApproShapley), with each
    order followed by its reverse (antithetic pairs, Mitchell et al. 2022). Returns (batch, units), signed, in units of
    the target.

    `samples` is the maximum number of evaluations per text, the full and the empty text included; None is 4 n + 128. A
    pair takes at most 2 n - 2 new ones; a keep that several orders share is evaluated once. Pairs are drawn until the
    next would not fit. If samples >= 2^n, all keeps are evaluated and the result is exact. At most min(samples, 2^n)
    forward passes, those of all texts together.

    `tolerance` stops a text early. Orders are then evaluated eight at a time, in the same sequence, until the largest
    standard error of its scores is at most the tolerance, in units of the target. Because this error is itself an
    estimate, stopping on it ends a little too early on average. The notes hold `orders` ("all" if exact) and
    `standard_error` per unit, from the spread of pairs; None with fewer than two pairs.

    Guarantees the sum v(all) - v(empty), and zero for a unit that changes nothing, because every order does; each
    single score only as the samples grow. Raises InputError if samples < n + 1, which is too few for a single order.

    Differences from the paper: antithetic pairs; a budget in evaluations and not in orders; equal keeps are evaluated
    once.

    Reference: castro2009polynomial; mitchell2022sampling.
    """

    samples: Samples = None
    tolerance: Annotated[
        float | None, Setting(above=0, words="a standard error above 0, such as 0.01, or None to spend all samples")
    ] = None

    reference: ClassVar[str] = "castro2009polynomial"
    properties: ClassVar[frozenset[Property]] = frozenset(
        {Property.SIGNED, Property.COMPLETE, Property.DUMMY, Property.RANDOM}
    )
    passes: ClassVar[str] = f"at most min(samples, 2^n) forward; samples = {FORMULA} unless given"

    def attribute(self, problem: Problem, rngs: Rngs) -> Float[Tensor, "batch scored"]:
        counts = problem.encoding.unit_counts
        plans = [self._plan(n, rng) for n, rng in zip(counts, rngs, strict=True)]
        # Without a tolerance nothing can stop a text: all its orders are one round.
        step = 2 * max(len(plan) for plan in plans) if self.tolerance is None else ROUND
        exact = [self._budget(n) >= 2**n for n in counts]
        keeps = [
            all_coalitions(n) if whole else arrivals(plan[:step])
            for n, whole, plan in zip(counts, exact, plans, strict=True)
        ]
        values_of = [values.numpy() for values in problem.values([torch.from_numpy(rows) for rows in keeps])]
        added = [
            exact_shapley(values)[None] if whole else contributions(plan[:step], values)
            for whole, plan, values in zip(exact, plans, values_of, strict=True)
        ]
        self._refine(problem, plans, added)
        errors = [standard_errors(rows) for rows in added]
        problem.note("orders", ["all" if whole else len(rows) for whole, rows in zip(exact, added, strict=True)])
        problem.note(
            "standard_error",
            [
                [0.0] * n if whole else None if error is None else error.tolist()
                for n, whole, error in zip(counts, exact, errors, strict=True)
            ],
        )
        return pad_sequence([torch.from_numpy(rows.mean(axis=0)) for rows in added], batch_first=True)

    def cost(self, units: int) -> Cost:
        return Cost(forwards=min(self._budget(units), 2**units))

    def _budget(self, units: int) -> int:
        return usual_samples(units) if self.samples is None else self.samples

    def _plan(self, units: int, rng: np.random.Generator) -> Orders:
        """Orders to go through; none where all keeps are affordable."""
        budget = self._budget(units)
        if budget >= 2**units:
            return np.zeros((0, units), dtype=np.int64)
        if budget < units + 1:
            raise InputError(
                f"samples={budget} of shapley_sampling are too few for a text of {units} units: a single order needs "
                f"{units + 1} evaluations. Give at least {2 * units} for a pair of orders, or None for "
                f"{IN_WORDS}."
            )
        return draw_orders(units, budget, rng)

    def _refine(
        self, problem: Problem, plans: list[TextOrders], added: list[Float[np.ndarray, "_orders _units"]]
    ) -> None:
        """Round by round, the texts whose scores are not settled yet, until none is left or its orders end."""
        while True:
            following = [
                plan[:0] if self._settled(rows) else plan[len(rows) : len(rows) + ROUND]
                for plan, rows in zip(plans, added, strict=True)
            ]
            if not any(map(len, following)):
                return
            values_of = problem.values([torch.from_numpy(arrivals(orders)) for orders in following])
            for text, (orders, values) in enumerate(zip(following, values_of, strict=True)):
                added[text] = np.concatenate([added[text], contributions(orders, values.numpy())])

    def _settled(self, added: Float[np.ndarray, "orders units"]) -> bool:
        errors = standard_errors(added)
        return self.tolerance is not None and errors is not None and bool(errors.max() <= self.tolerance)
